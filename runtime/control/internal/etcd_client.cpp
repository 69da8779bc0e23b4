#include "runtime/control/internal/etcd_client.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

#include "runtime/base/check.hpp"
#include "runtime/control/internal/etcd_messages.hpp"

namespace troupe::control {
namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{128} << 20;
constexpr Duration kLeastTime = std::chrono::milliseconds(50);  // for an endpoint

/// Keeps a connection that the other side has closed from killing the process: the library writes
/// without MSG_NOSIGNAL, and the signal's handler is not ours to set.
class NoSigpipe {
public:
  NoSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    if (::sigismember(&before_, SIGPIPE) == 1) return;
    const timespec none{};
    while (::sigtimedwait(&pipe_, nullptr, &none) == SIGPIPE) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace

struct EtcdClient::Http {
  explicit Http(const Endpoint& endpoint) : client(endpoint.host, endpoint.port) {
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
  }
  httplib::Client client;
};

EtcdClient::EtcdClient(std::vector<Endpoint> endpoints) : endpoints_(std::move(endpoints)) {
  TROUPE_CHECK(!endpoints_.empty(), "an etcd client without endpoints");
}

EtcdClient::~EtcdClient() = default;

Result<std::string> EtcdClient::post_once(const char* path, const std::string& body,
                                          TimePoint deadline) {
  const Endpoint& endpoint = endpoints_[current_];
  if (!http_) http_ = std::make_unique<Http>(endpoint);
  const Duration left = std::max(deadline - std::chrono::steady_clock::now(), kLeastTime);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(left);
  http_->client.set_connection_timeout(micros);
  http_->client.set_read_timeout(micros);
  http_->client.set_write_timeout(micros);

  std::string answer;
  bool too_large = false;
  httplib::Request request;
  request.method = "POST";
  request.path = path;
  request.set_header("Content-Type", "application/json");
  request.body = body;
  // Each read has the time from above; all of them together have it here.
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    too_large = answer.size() + size > kMaxAnswerBytes;
    if (too_large || std::chrono::steady_clock::now() > deadline + kLeastTime) return false;
    answer.append(data, size);
    return true;
  };
  const NoSigpipe no_sigpipe;
  const httplib::Result result = http_->client.send(request);
  if (too_large)
    return {Code::protocol_error, fmt::format("etcd at {} answers more than {} MiB",
                                              to_string(endpoint), kMaxAnswerBytes >> 20)};
  if (!result)
    return {Code::unavailable,
            fmt::format("etcd at {} cannot be reached ({}); start it or correct the address",
                        to_string(endpoint), httplib::to_string(result.error()))};
  if (result->status != 200) return etcd::parse_refusal(result->status, answer);
  return answer;
}

Result<std::string> EtcdClient::post(const char* path, const std::string& body,
                                     TimePoint deadline) {
  MutexLock lock(mutex_);
  Error last{Code::unavailable, "no time to ask etcd"};
  for (std::size_t left = endpoints_.size(); left > 0; --left) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (now >= deadline) break;
    const TimePoint share = now + (deadline - now) / static_cast<int>(left);
    try {
      auto answer = post_once(path, body, share);
      if (answer.code() != Code::unavailable) return answer;
      last = std::move(answer).error();
    } catch (const std::exception& e) {
      last = {Code::unavailable, fmt::format("etcd at {} cannot be asked ({})",
                                             to_string(endpoints_[current_]), e.what())};
    }
    http_.reset();
    current_ = (current_ + 1) % endpoints_.size();
  }
  return last;
}

}  // namespace troupe::control
