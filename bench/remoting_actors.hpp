#pragma once

#include <cstddef>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

namespace troupe::bench {

/// One run between this process and another that serves.
struct Figures {
  double round_trip_us = 0;
  double messages_per_s = 0;
  double bytes_per_s = 0;
};

/// How much one run does.
struct Load {
  int round_trips = 5000;
  int messages = 300'000;
  int buffers = 20;
};

inline constexpr std::size_t kSmallBytes = 64;
inline constexpr std::size_t kLargeBytes = std::size_t{64} << 20;

/// Adds the types that both stacks send.
void configure(caf::actor_system_config& config);

/// Answers numbers, counts everything else.
caf::actor spawn_server(caf::actor_system& system);

/// Measures against `server`, which lives in another process. Large messages are Buffers, or (what
/// the middleman has) vectors of bytes. Aborts if something was lost on the way.
Figures measure(caf::actor_system& system, const caf::actor& server, const Load& load,
                bool with_buffers);

}  // namespace troupe::bench
