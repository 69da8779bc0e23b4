#include "runtime/remoting/internal/caf_module.hpp"

#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/logger.hpp>

#include "runtime/base/mutex.hpp"

namespace troupe::remoting {
namespace {

/// Loggers of actor systems that are gone, until no thread remembers them. Threads: any.
class OldLoggers {
public:
  void add(caf::intrusive_ptr<caf::logger> logger) {
    MutexLock lock(mutex_);
    loggers_.push_back(std::move(logger));
  }
  void sweep() {
    MutexLock lock(mutex_);
    std::erase_if(loggers_, [](caf::intrusive_ptr<caf::logger>& logger) {
      if (logger->get_reference_count() != 1) return false;
      // Without its destructor, which would speak to its actor system. One that logs nothing holds
      // nothing.
      ::operator delete(static_cast<void*>(logger.detach()));
      return true;
    });
  }

private:
  Mutex mutex_;
  std::vector<caf::intrusive_ptr<caf::logger>> loggers_ TROUPE_GUARDED_BY(mutex_);
};

OldLoggers& old_loggers() {
  static auto* const loggers = new OldLoggers;  // NOLINT: threads may end after static objects
  return *loggers;
}

}  // namespace
}  // namespace troupe::remoting

// The one place that reaches into CAF: see the header. A program that links a CAF with a network
// module of its own (0.18 has one) would define this class twice, and the linker says so.
namespace caf::net {

class middleman final : public actor_system::module {
public:
  middleman(actor_system& system, node_id node) : system_(system), node_(std::move(node)) {}

  void init(actor_system_config&) override { system_.node_ = node_; }
  void start() override {}
  void stop() override {
    if (system_.logger().verbosity() != CAF_LOG_LEVEL_QUIET) return;
    troupe::remoting::old_loggers().add(system_.logger_);
    system_.logger_dtor_done_ = true;
  }
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

void destroy(std::unique_ptr<caf::actor_system> system) {
  caf::logger::set_current_actor_system(nullptr);
  system.reset();
  old_loggers().sweep();
}

}  // namespace troupe::remoting
