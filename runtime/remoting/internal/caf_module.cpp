#include "runtime/remoting/internal/caf_module.hpp"

#include <utility>

#include <caf/actor_system.hpp>

// The one place that reaches into CAF: see the header. A program that links a CAF with a network
// module of its own (0.18 has one) would define this class twice, and the linker says so.
namespace caf::net {

class middleman final : public actor_system::module {
public:
  middleman(actor_system& system, node_id node) : system_(system), node_(std::move(node)) {}

  void init(actor_system_config&) override { system_.node_ = node_; }
  void start() override {}
  void stop() override {}
  id_t id() const override { return network_manager; }
  void* subtype_ptr() override { return this; }

private:
  actor_system& system_;
  node_id node_;
};

}  // namespace caf::net

namespace troupe::remoting {

void set_node_id(caf::actor_system_config& config, caf::node_id node) {
  config.module_factories.emplace_back(
      [node = std::move(node)](caf::actor_system& system) -> caf::actor_system::module* {
        return new caf::net::middleman(system, node);  // NOLINT: the system takes it
      });
}

}  // namespace troupe::remoting
