#include "runtime/remoting/remoting.hpp"

#include <array>
#include <cstring>
#include <future>
#include <utility>

#include <caf/actor_system_config.hpp>
#include <caf/thread_hook.hpp>
#include <fmt/format.h>
#include <pthread.h>

#include "runtime/remoting/buffer_message.hpp"
#include "runtime/remoting/caf_error.hpp"
#include "runtime/remoting/internal/caf_module.hpp"
#include "runtime/remoting/internal/endpoint.hpp"

namespace troupe::remoting {
namespace {

/// CAF's threads under our name.
class NameThreads final : public caf::thread_hook {
public:
  void init(caf::actor_system&) override {}
  void thread_started() override {
    std::array<char, 16> name{};
    const auto self = pthread_self();
    if (pthread_getname_np(self, name.data(), name.size()) != 0) return;
    const bool clock = std::strcmp(name.data(), "caf.clock") == 0;
    pthread_setname_np(self, clock ? "troupe.clock" : "troupe.actors");
  }
  void thread_terminates() override {}
};

void configure(caf::actor_system_config& config, const Options& options) {
  set_node_id(config, to_caf(options.node));
  config.add_thread_hook<NameThreads>();
  config.add_message_type<Buffer>("troupe::Buffer");
  config.add_error_category(
      kErrorCategory, [](std::uint8_t code, caf::atom_value category, const caf::message& context) {
        return to_string(from_caf(caf::error(code, category, context)));
      });
  // The idle workers of the stealing policy nap up to 10 ms.
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", options.threads);
  if (options.configure) options.configure(config);
}

class RemotingImpl final : public Remoting {
public:
  RemotingImpl(Options options, transport::Transport& transport)
      : options_(std::move(options)), transport_(transport) {
    configure(config_, options_);
    system_ = std::make_unique<caf::actor_system>(config_);
    endpoint_ = std::make_shared<Endpoint>(*system_, transport_, options_);
    transport_.set_handler(transport::Channel::actors, *endpoint_);
  }

  ~RemotingImpl() override {
    stop();
    endpoint_->wait_idle();
    destroy(std::move(system_));
  }

  caf::actor_system& system() override { return *system_; }
  void set_resolver(Resolver resolver) override { endpoint_->set_resolver(std::move(resolver)); }
  void node_lost(NodeId node, const Error& reason) override { endpoint_->node_lost(node, reason); }
  void stop() override { endpoint_->stop(); }

  Status register_name(const std::string& name, const caf::actor& actor) override {
    return endpoint_->register_name(name, actor);
  }
  void unregister_name(const std::string& name) override { endpoint_->forget_name(name); }

  Result<caf::actor> lookup(NodeId node, const std::string& name, Duration timeout) override {
    if (node != options_.node)
      return wait(node, "lookup", timeout,
                  [&](Calls::Done done) { return endpoint_->lookup(node, name, std::move(done)); });
    if (auto found = endpoint_->find_name(name); found != nullptr) return found;
    return Error{Code::not_found, fmt::format("no actor is registered as '{}' on this node", name)};
  }

  Result<caf::actor> spawn(NodeId node, const std::string& type, caf::message arguments,
                           Duration timeout) override {
    return wait(node, "spawn", timeout, [&](Calls::Done done) -> std::uint64_t {
      if (node != options_.node) return endpoint_->spawn(node, type, arguments, std::move(done));
      endpoint_->spawn_here(type, std::move(arguments), std::move(done));
      return 0;
    });
  }

  void spawn_async(NodeId node, const std::string& type, caf::message arguments, Duration timeout,
                   std::function<void(Result<caf::actor>)> done) override {
    if (node == options_.node) {
      endpoint_->spawn_here(type, std::move(arguments),
                            [endpoint = endpoint_, done = std::move(done)](auto result) {
                              endpoint->finish_later(std::move(result), done);
                            });
      return;
    }
    const auto call = endpoint_->spawn(node, type, arguments,
                                       [endpoint = endpoint_, done = std::move(done)](auto result) {
                                         endpoint->finish_later(std::move(result), done);
                                       });
    transport_.post_at(clock_.now() + time(timeout),
                       [endpoint = std::weak_ptr(endpoint_), call, late = late("spawn", node)] {
                         if (auto self = endpoint.lock()) self->give_up(call, late);
                       });
  }

private:
  Duration time(Duration timeout) const {
    return timeout > Duration::zero() ? timeout : options_.lookup_timeout;
  }
  static Error late(const char* what, NodeId node) {
    return {Code::deadline_exceeded,
            fmt::format("the {} on node {} did not end in time", what, short_name(node))};
  }

  template <class Start>
  Result<caf::actor> wait(NodeId node, const char* what, Duration timeout, Start start) {
    if (transport_.on_progress_thread())
      return Error{Code::failed_precondition,
                   fmt::format("a {} blocks, and this thread carries all traffic; use the "
                               "asynchronous one",
                               what)};
    auto promise = std::make_shared<std::promise<Result<caf::actor>>>();
    auto future = promise->get_future();
    const auto call =
        start([promise](Result<caf::actor> result) { promise->set_value(std::move(result)); });
    if (future.wait_for(time(timeout)) == std::future_status::timeout) {
      // One that runs here cannot be called back; its actor, if any, ends with its last handle.
      if (call == 0) return late(what, node);
      endpoint_->give_up(call, late(what, node));
    }
    return future.get();
  }

  Options options_;
  transport::Transport& transport_;
  SteadyClock clock_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  /// Outlives the system: proxies call it.
  std::shared_ptr<Endpoint> endpoint_;
};

}  // namespace

Result<std::unique_ptr<Remoting>> make_remoting(Options options, transport::Transport& transport) {
  if (!options.node.valid())
    return Error{Code::invalid_argument, "remoting needs a node id; take the transport's"};
  if (options.threads == 0)
    return Error{Code::invalid_argument, "remoting needs at least 1 thread for actors, not 0"};
  try {
    return std::unique_ptr<Remoting>(std::make_unique<RemotingImpl>(std::move(options), transport));
  } catch (const std::exception& e) {
    // From the program's own `configure`.
    return Error{Code::internal, fmt::format("the actor system cannot be set up: {}", e.what())};
  }
}

}  // namespace troupe::remoting
