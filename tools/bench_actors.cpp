#include "tools/bench_actors.hpp"

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "runtime/memory/buffer.hpp"
#include "runtime/remoting/buffer_message.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::tool {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kTimeout = 60s;

struct EchoState {
  std::uint64_t seen = 0;
};

/// A number comes back one larger; text is counted; a buffer's size comes back.
caf::behavior echo(caf::stateful_actor<EchoState>* self) {
  return {
      [](std::uint64_t x) { return x + 1; },
      [self](const std::string&) { ++self->state.seen; },
      [](const Buffer& buffer) { return static_cast<std::uint64_t>(buffer.size()); },
      [self](caf::get_atom) { return self->state.seen; },
  };
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Sends a request when the answer to the one before has come; tells `done` at the end.
caf::behavior requester(caf::event_based_actor* self, caf::actor peer, std::uint64_t count,
                        caf::actor done) {
  self->set_default_handler(caf::print_and_drop);
  auto next = std::make_shared<std::function<void(std::uint64_t)>>();
  std::weak_ptr weak = next;
  *next = [=](std::uint64_t i) {
    self->request(peer, kTimeout, i)
        .then(
            [=](std::uint64_t answer) {
              if (answer >= count) {
                self->send(done, answer);
                self->quit();
              } else if (auto again = weak.lock()) {
                (*again)(answer);
              }
            },
            [=](const caf::error& error) {
              self->send(done, error);
              self->quit();
            });
  };
  return {[next](caf::ok_atom) { (*next)(0); }};
}

}  // namespace

void register_bench_actors(caf::actor_system_config& config) {
  config.add_actor_type(kEchoType, echo);
}

Result<double> measure_round_trip(caf::actor_system& system, const caf::actor& echo_actor,
                                  std::size_t count) {
  caf::scoped_actor self{system};
  auto actor = self->spawn(requester, echo_actor, std::uint64_t{count}, caf::actor{self});
  const auto start = Clock::now();
  self->send(actor, caf::ok_atom::value);
  Result<double> result{Code::internal, "no answer"};
  self->receive(
      [&](std::uint64_t) { result = seconds_since(start) / static_cast<double>(count) * 1e6; },
      [&](const caf::error& error) { result = remoting::from_caf(error); });
  return result;
}

Result<double> measure_one_way(caf::actor_system& system, const caf::actor& echo_actor,
                               std::size_t count) {
  caf::scoped_actor self{system};
  const std::string text(64, 'x');
  auto seen = [&]() -> Result<double> {
    Result<double> result{Code::internal, "no answer"};
    self->request(echo_actor, kTimeout, caf::get_atom::value)
        .receive([&](std::uint64_t n) { result = static_cast<double>(n); },
                 [&](const caf::error& error) { result = remoting::from_caf(error); });
    return result;
  };
  TROUPE_ASSIGN(double before, seen());
  const auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) self->send(echo_actor, text);
  TROUPE_ASSIGN(double after, seen());
  if (after - before != static_cast<double>(count))
    return Error{Code::internal, "messages were lost or counted twice"};
  return static_cast<double>(count) / seconds_since(start);
}

Result<double> measure_bandwidth(caf::actor_system& system, const caf::actor& echo_actor,
                                 std::size_t bytes, std::size_t count) {
  TROUPE_ASSIGN(auto buffer, Buffer::allocate(bytes));
  std::memset(buffer.data(), 1, bytes);
  caf::scoped_actor self{system};
  const auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    Status status;
    self->request(echo_actor, kTimeout, buffer)
        .receive(
            [&](std::uint64_t size) {
              if (size != bytes)
                status = Error{Code::internal, "a buffer arrived with another size"};
            },
            [&](const caf::error& error) { status = remoting::from_caf(error); });
    TROUPE_TRY(status);
  }
  return static_cast<double>(bytes) * static_cast<double>(count) / seconds_since(start) / 1e9;
}

}  // namespace troupe::tool
