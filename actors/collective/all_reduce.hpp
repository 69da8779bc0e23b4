#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include "actors/collective/plan.hpp"
#include "runtime/memory/buffer.hpp"
#include "runtime/memory/buffer_pool.hpp"
#include "runtime/remoting/buffer_message.hpp"

namespace troupe::collective {

// All-reduce for any program: spawn one actor per node, give each the Group, then request
// AllReduce on every node, in the same order and with the same sizes:
//
//     auto reducer = spawn_all_reduce(system);
//     self->send(reducer, Group{members, my_place, {}});   // members: the actors of all nodes
//     self->request(reducer, caf::infinite, AllReduce{values}).then(
//         [](const AllReduced& x) { use(x.sum); },
//         [](const caf::error& e) { report(remoting::from_caf(e)); });
//
// The sum is that of Tree with the members as ranks, the same bits on each.

/// -> all-reduce actor: who takes part. Once; answered with nothing. Requests that come before
/// wait.
struct Group {
  std::vector<caf::actor> members;
  std::uint32_t self = 0;  ///< place of the receiver in `members`
  Tuning tuning;           ///< the same on all
};

/// -> all-reduce actor, answered with AllReduced when all members have asked. Several may be under
/// way; they are served in order. Errors (troupe::remoting::from_caf): `unavailable` (a member is
/// gone), `protocol_error` (members asked for different sizes), `invalid_argument`. But for
/// `invalid_argument`, all later requests fail too: the members no longer agree where they are.
struct AllReduce {
  Buffer values;  ///< f32; not written again before it is unique()
};
struct AllReduced {
  Buffer sum;  ///< f32, from a pool; read-only while not unique()
};

/// Spawns one; it lives until it is sent an exit message. `pool` (one of its own if null) is where
/// sums are taken from.
caf::actor spawn_all_reduce(caf::actor_system& system, std::shared_ptr<BufferPool> pool = nullptr);

template <class Inspector>
auto inspect(Inspector& f, Group& x) {
  return f(x.members, x.self, x.tuning);
}
template <class Inspector>
auto inspect(Inspector& f, AllReduce& x) {
  return f(x.values);
}
template <class Inspector>
auto inspect(Inspector& f, AllReduced& x) {
  return f(x.sum);
}

}  // namespace troupe::collective
