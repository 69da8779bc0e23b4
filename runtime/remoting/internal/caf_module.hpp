#pragma once

#include <caf/actor_system_config.hpp>
#include <caf/node_id.hpp>

namespace troupe::remoting {

/// Gives the actor system that is made from `config` the node id `node`.
///
/// CAF 0.17 has no public way to do so: the id stays invalid unless CAF's TCP middleman is loaded,
/// and that one makes up an id of its own and costs a thread. The id is private to actor_system,
/// which befriends `caf::net::middleman`, a class that CAF 0.17 announces but does not define.
/// caf_module.cpp defines it, as a module that sets the id and does nothing else.
void set_node_id(caf::actor_system_config& config, caf::node_id node);

}  // namespace troupe::remoting
