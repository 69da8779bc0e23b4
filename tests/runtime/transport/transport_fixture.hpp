#pragma once

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/mutex.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::transport {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A buffer whose every 8 bytes follow from `seed`.
inline Buffer pattern(std::size_t bytes, std::uint64_t seed) {
  Buffer buffer = Buffer::allocate(bytes).value();
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    const std::uint64_t word = seed * 0x9E3779B97F4A7C15ull + i;
    std::memcpy(buffer.data() + i, &word, 8);
  }
  for (std::size_t i = bytes / 8 * 8; i < bytes; ++i)
    buffer.data()[i] = static_cast<std::byte>(seed);
  return buffer;
}
inline bool has_pattern(const Buffer& buffer, std::uint64_t seed) {
  const Buffer wanted = pattern(buffer.size(), seed);
  return buffer.empty() || std::memcmp(buffer.data(), wanted.data(), buffer.size()) == 0;
}

/// Writes down what arrives, and lets a test wait for it.
class Recorder : public Handler {
public:
  struct Message {
    PeerId peer = 0;
    std::string bytes;
    std::vector<Buffer> segments;
  };

  void on_connected(PeerId peer, const PeerInfo& info) override {
    MutexLock lock(mutex_);
    connected_.emplace_back(peer, info);
    changed_.notify_all();
  }
  void on_message(PeerId peer, std::span<const std::byte> bytes,
                  std::span<Buffer> segments) override {
    if (on_arrival) on_arrival(peer, bytes, segments);
    MutexLock lock(mutex_);
    ++count_;
    if (keep) {
      Message message{peer, text_of(bytes), {}};
      for (Buffer& segment : segments) message.segments.push_back(std::move(segment));
      messages_.push_back(std::move(message));
    }
    changed_.notify_all();
  }
  void on_lost(PeerId peer, const Error& reason) override {
    MutexLock lock(mutex_);
    lost_.emplace_back(peer, reason);
    changed_.notify_all();
  }

  /// False if it did not come true within half a minute.
  bool wait(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    MutexLock lock(mutex_);
    while (!condition())
      if (changed_.wait_until(mutex_, until) == std::cv_status::timeout) return condition();
    return true;
  }
  bool wait_connected(std::size_t n) {
    return wait([&]() TROUPE_NO_THREAD_SAFETY_ANALYSIS { return connected_.size() >= n; });
  }
  bool wait_messages(std::size_t n) {
    return wait([&]() TROUPE_NO_THREAD_SAFETY_ANALYSIS { return count_ >= n; });
  }
  bool wait_lost(std::size_t n) {
    return wait([&]() TROUPE_NO_THREAD_SAFETY_ANALYSIS { return lost_.size() >= n; });
  }

  std::vector<std::pair<PeerId, PeerInfo>> connected() {
    MutexLock lock(mutex_);
    return connected_;
  }
  std::vector<Message> messages() {
    MutexLock lock(mutex_);
    return messages_;
  }
  std::size_t count() {
    MutexLock lock(mutex_);
    return count_;
  }
  std::vector<std::pair<PeerId, Error>> lost() {
    MutexLock lock(mutex_);
    return lost_;
  }

  bool keep = true;  ///< before start
  std::function<void(PeerId, std::span<const std::byte>, std::span<Buffer>)> on_arrival;

private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<PeerId, PeerInfo>> connected_ TROUPE_GUARDED_BY(mutex_);
  std::vector<Message> messages_ TROUPE_GUARDED_BY(mutex_);
  std::size_t count_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<PeerId, Error>> lost_ TROUPE_GUARDED_BY(mutex_);
};

/// A value that another thread sets once.
template <class T>
class Promise {
public:
  void set(T value) {
    MutexLock lock(mutex_);
    value_ = std::make_unique<T>(std::move(value));
    set_.notify_all();
  }
  T get() {
    MutexLock lock(mutex_);
    while (!value_) set_.wait(mutex_);
    return std::move(*value_);
  }

private:
  Mutex mutex_;
  CondVar set_;
  std::unique_ptr<T> value_ TROUPE_GUARDED_BY(mutex_);
};

inline Options options_of(std::string name, std::string tls = "") {
  Options options;
  options.node = NodeId::random();
  options.name = std::move(name);
  options.tls = std::move(tls);
  return options;
}

/// A transport with a recorder for the actors' channel.
struct Side {
  explicit Side(Options options) : transport(make_ucx_transport(std::move(options)).value()) {
    transport->set_handler(Channel::actors, recorder);
  }
  ~Side() { transport->stop(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void start() { ASSERT_TRUE(transport->start().ok()); }
  Address listen() { return transport->listen({"127.0.0.1", 0}).value(); }
  Result<PeerId> connect(const Address& address) {
    auto answer = std::make_shared<Promise<Result<PeerId>>>();
    transport->connect(address, [answer](Result<PeerId> r) { answer->set(std::move(r)); });
    return answer->get();
  }
  Status send(PeerId peer, std::string_view text, std::vector<Buffer> segments = {}) {
    return transport->send(peer, Channel::actors, {}, bytes_of(text), std::move(segments));
  }

  Recorder recorder;
  std::unique_ptr<Transport> transport;
};

/// Two connected transports in this process.
struct Pair {
  explicit Pair(const std::string& tls) : Pair(options_of("a", tls), options_of("b", tls)) {}
  Pair(Options first, Options second) : a(std::move(first)), b(std::move(second)) {}
  void connect() {
    a.start();
    b.start();
    const auto peer = a.connect(b.listen());
    ASSERT_TRUE(peer.ok()) << to_string(peer.error());
    to_b = *peer;
    ASSERT_TRUE(b.recorder.wait_connected(1));
    to_a = b.recorder.connected()[0].first;
  }

  Side a, b;
  PeerId to_b = 0, to_a = 0;
};

}  // namespace troupe::transport
