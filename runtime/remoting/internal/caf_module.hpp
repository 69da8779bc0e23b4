#pragma once

#include <memory>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/node_id.hpp>

namespace troupe::remoting {

/// Gives the actor system that is made from `config` the node id `node`.
///
/// CAF 0.17 has no public way to do so: the id stays invalid unless CAF's TCP middleman is loaded,
/// and that one makes up an id of its own and costs a thread. The id is private to actor_system,
/// which befriends `caf::net::middleman`, a class that CAF 0.17 announces but does not define.
/// caf_module.cpp defines it, as a module that sets the id; destroy() needs its access, too.
void set_node_id(caf::actor_system_config& config, caf::node_id node);

/// Destroys an actor system whose config set_node_id() saw.
///
/// In CAF 0.17 each thread that made an actor system, spawned an actor or had a scoped actor keeps
/// a reference to that system's logger until it meets another system, and the system's destructor
/// waits until all are gone: for ever, if such a thread waits for the destructor or just lives on.
/// Here such a logger outlives its system, on its memory, as long as some thread remembers it. Only
/// if CAF's own logging was switched on, CAF's way stays.
void destroy(std::unique_ptr<caf::actor_system> system);

}  // namespace troupe::remoting
