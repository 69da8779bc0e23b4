#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "actors/job/job_service.hpp"
#include "runtime/base/mutex.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

/// Set once, waited for once.
class Event {
public:
  void set() {
    MutexLock lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void wait() {
    MutexLock lock(mutex_);
    while (!set_) changed_.wait(mutex_);
  }

private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ TROUPE_GUARDED_BY(mutex_) = false;
};

struct Options {
  NodeOptions node;
  std::string store;
  bool standby = false;
  bool quiet = false;
  double headless = 120;  ///< seconds
};

/// The runtime of a head, once it leads.
Result<std::unique_ptr<Runtime>> start(const Options& options, Signals& signals) {
  TROUPE_ASSIGN(auto runtime_options, options.node.runtime_options());
  if (options.store.empty()) {
    if (options.standby)
      return Error{Code::invalid_argument,
                   "--standby needs the --store that tells whether another head leads"};
    return Runtime::start_cluster(std::move(runtime_options));
  }
  control::StoreOptions store_options;
  store_options.leader = options.node.listen;
  TROUPE_ASSIGN(std::shared_ptr<control::Store> store,
                control::open_store(options.store, std::move(store_options)));
  runtime_options.store = store;
  runtime_options.headless = from_seconds(options.headless);
  if (options.standby) {
    runtime_options.lead_timeout = std::chrono::hours(24 * 365);
    if (!options.quiet)
      std::printf("standby: leads as soon as no other head of %s does\n", options.store.c_str());
    std::fflush(stdout);
  }
  const auto on_signal = signals.on_signal([store](int) { store->cancel(); });
  return Runtime::start_cluster(std::move(runtime_options));
}

Result<int> run_head(const Options& options, Signals& signals) {
  auto started = start(options, signals);
  if (started.code() == Code::cancelled) return kSuccess;  // told to stop before it led
  TROUPE_ASSIGN(auto runtime, std::move(started));
  TROUPE_ASSIGN(auto service, train::JobService::start(*runtime));
  Event stop;
  const auto on_signal = signals.on_signal([&](int) { stop.set(); });
  const auto watch = std::jthread([&](const std::stop_token& token) {
    while (!token.stop_requested() && runtime->membership_status().ok())
      (void)runtime->wait_until_out(std::chrono::milliseconds(200));
    stop.set();
  });
  if (!options.quiet)
    std::printf("head listens at %s; nodes join with: troupe node --head %s\n",
                transport::to_string(runtime->address()).c_str(),
                transport::to_string(runtime->address()).c_str());
  std::fflush(stdout);

  stop.wait();
  if (const auto out = runtime->membership_status(); !out.ok()) return out.error();
  if (!options.quiet) std::printf("stopping: jobs end at a step boundary with a checkpoint\n");
  service.reset();
  runtime->stop();
  return kSuccess;
}

}  // namespace

void add_head(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("head", "Start a cluster: lead it and take jobs");
  auto options = std::make_shared<Options>();
  options->node.name = "head";
  options->node.slots = 0;
  options->node.listen = "127.0.0.1:7077";
  options->node.add_listen(*command);
  options->node.add_common(*command);
  auto* const store = command->add_option(
      "--store", options->store,
      "keep the cluster's state in sqlite:PATH or etcd://HOST:PORT/PREFIX: nodes "
      "then go on without their head, and the next one with this store takes over");
  store->check([](const std::string& text) {
    return std::string(text.empty() ? "it is empty: write sqlite:PATH or etcd://..." : "");
  });
  command->add_flag("--quiet", options->quiet, "print errors only");
  command->add_flag("--standby", options->standby,
                    "wait, for however long, until no other head of the store leads");
  command
      ->add_option("--headless", options->headless,
                   "seconds that nodes go on without a head, with a store")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 604800.0))
      ->needs(store);
  command->callback([&context, options] {
    context.run = [&context, options] {
      auto code = run_head(*options, context.signals);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
