#include "runtime/remoting/internal/caf_module.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/logger.hpp>

#include "runtime/base/mutex.hpp"

namespace troupe::remoting {
namespace {

/// The memory of an actor system that is gone and its logger, which still speaks to it.
struct OldSystem {
  caf::intrusive_ptr<caf::logger> logger;
  void* memory = nullptr;
  // What the logger's destructor uses of it.
  std::mutex* mutex = nullptr;
  std::condition_variable* condition = nullptr;

  void destroy() {
    std::construct_at(mutex);
    std::construct_at(condition);
    logger.reset();
    std::destroy_at(condition);
    std::destroy_at(mutex);
    ::operator delete(memory);
  }
};

/// Those whose logger some thread remembers. Threads: any.
class OldSystems {
public:
  void add(OldSystem system) {
    MutexLock lock(mutex_);
    systems_.push_back(std::move(system));
  }
  void sweep() {
    MutexLock lock(mutex_);
    std::erase_if(systems_, [](OldSystem& system) {
      if (system.logger->get_reference_count() != 1) return false;
      system.destroy();
      return true;
    });
  }

private:
  Mutex mutex_;
  std::vector<OldSystem> systems_ TROUPE_GUARDED_BY(mutex_);
};

OldSystems& old_systems() {
  static auto* const systems = new OldSystems;  // NOLINT: threads may end after static objects
  return *systems;
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
  void stop() override {}
  id_t id() const override { return network_manager; }
  void* subtype_ptr() override { return this; }

  /// Destroys the system without waiting for its logger's end.
  static troupe::remoting::OldSystem destroy(actor_system& system) {
    troupe::remoting::OldSystem old{system.logger_, &system, &system.logger_dtor_mtx_,
                                    &system.logger_dtor_cv_};
    system.logger_dtor_done_ = true;
    system.~actor_system();
    return old;
  }

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
  static_assert(alignof(caf::actor_system) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  caf::logger::set_current_actor_system(nullptr);
  if (system->logger().verbosity() != CAF_LOG_LEVEL_QUIET) return system.reset();
  old_systems().add(caf::net::middleman::destroy(*system.release()));
  old_systems().sweep();
}

}  // namespace troupe::remoting
