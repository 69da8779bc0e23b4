#include "bench/remoting_actors.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "runtime/base/check.hpp"
#include "runtime/memory/buffer.hpp"
#include "runtime/remoting/buffer_message.hpp"

namespace troupe::bench {
namespace {

using Seconds = std::chrono::duration<double>;

double now() {
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Count {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

caf::behavior serve(caf::stateful_actor<Count>* self) {
  return {[](std::int64_t x) { return x; },
          [self](const std::string& x) {
            ++self->state.messages;
            self->state.bytes += static_cast<std::int64_t>(x.size());
          },
          [self](const Buffer& x) { self->state.bytes += static_cast<std::int64_t>(x.size()); },
          [self](const std::vector<char>& x) {
            self->state.bytes += static_cast<std::int64_t>(x.size());
          },
          // Comes after all that was sent before it, and starts the count anew.
          [self](caf::get_atom) {
            const auto bytes = self->state.bytes;
            self->state = {};
            return bytes;
          }};
}

struct Pinger {
  double begin = 0;
};

void ping(caf::stateful_actor<Pinger>* self, const caf::actor& server, std::int64_t left,
          std::promise<double>* done) {
  if (left == 0) return done->set_value(now() - self->state.begin);
  self->request(server, caf::infinite, left).then([=](std::int64_t answer) {
    TROUPE_CHECK(answer == left, "another answer than was asked for");
    ping(self, server, left - 1, done);
  });
}

double round_trip_us(caf::actor_system& system, const caf::actor& server, int n) {
  std::promise<double> done;
  auto seconds = done.get_future();
  system.spawn([&](caf::stateful_actor<Pinger>* self) {
    self->state.begin = now();
    ping(self, server, n, &done);
  });
  return seconds.get() / n * 1e6;
}

template <class Message>
double one_way_s(caf::actor_system& system, const caf::actor& server, int n, const Message& message,
                 std::size_t bytes) {
  caf::scoped_actor self{system};
  const double begin = now();
  for (int i = 0; i < n; ++i) self->send(server, message);
  std::int64_t arrived = 0;
  self->request(server, caf::infinite, caf::get_atom::value)
      .receive([&](std::int64_t x) { arrived = x; }, [](const caf::error&) {});
  const double took = now() - begin;
  TROUPE_CHECK(arrived == static_cast<std::int64_t>(bytes) * n, "not everything arrived");
  return took;
}

}  // namespace

void configure(caf::actor_system_config& config) {
  config.add_message_type<Buffer>("troupe::Buffer");
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", std::size_t{2});
}

caf::actor spawn_server(caf::actor_system& system) {
  return system.spawn(serve);
}

Figures measure(caf::actor_system& system, const caf::actor& server, const Load& load,
                bool with_buffers) {
  Figures figures;
  figures.round_trip_us = round_trip_us(system, server, load.round_trips);
  const std::string small(kSmallBytes, '.');
  figures.messages_per_s =
      load.messages / one_way_s(system, server, load.messages, small, kSmallBytes);
  double seconds = 0;
  if (with_buffers) {
    auto large = Buffer::allocate(kLargeBytes).value();
    std::memset(large.data(), 1, large.size());
    seconds = one_way_s(system, server, load.buffers, large, kLargeBytes);
  } else {
    seconds =
        one_way_s(system, server, load.buffers, std::vector<char>(kLargeBytes, 1), kLargeBytes);
  }
  figures.bytes_per_s = static_cast<double>(kLargeBytes) * load.buffers / seconds;
  return figures;
}

}  // namespace troupe::bench
