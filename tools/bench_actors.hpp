#pragma once

#include <cstddef>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "runtime/base/status.hpp"

namespace troupe::tool {

inline constexpr const char* kEchoType = "troupe.bench.echo";

/// Adds the echo actor that the measurements below talk to.
void register_bench_actors(caf::actor_system_config& config);

// Measurements between this node and that of `echo`; each is one run. Block.

/// Mean microseconds of `count` requests, one after the other.
Result<double> measure_round_trip(caf::actor_system& system, const caf::actor& echo,
                                  std::size_t count);
/// Messages a second of `count` one-way messages of 64 bytes.
Result<double> measure_one_way(caf::actor_system& system, const caf::actor& echo,
                               std::size_t count);
/// Gigabytes (10^9) a second of `count` buffers of `bytes`, each answered before the next.
Result<double> measure_bandwidth(caf::actor_system& system, const caf::actor& echo,
                                 std::size_t bytes, std::size_t count);

}  // namespace troupe::tool
