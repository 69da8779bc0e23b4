#include <cstdio>

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

Result<int> run_head(const NodeOptions& options, Signals& signals) {
  TROUPE_ASSIGN(auto runtime_options, options.runtime_options());
  TROUPE_ASSIGN(auto runtime, Runtime::start_cluster(std::move(runtime_options)));
  TROUPE_ASSIGN(auto service, train::JobService::start(*runtime));
  Event stop;
  signals.on_signal([&](int) { stop.set(); });
  std::printf("head listens at %s; nodes join with: troupe node --head %s\n",
              transport::to_string(runtime->address()).c_str(),
              transport::to_string(runtime->address()).c_str());
  std::fflush(stdout);

  stop.wait();
  std::printf("stopping: jobs end at a step boundary with a checkpoint\n");
  service.reset();
  runtime->stop();
  return kSuccess;
}

}  // namespace

void add_head(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("head", "Start a cluster: lead it and take jobs");
  auto options = std::make_shared<NodeOptions>();
  options->name = "head";
  options->slots = 0;
  options->listen = "127.0.0.1:7077";
  options->add_listen(*command);
  options->add_common(*command);
  command->callback([&context, options] {
    context.run = [&context, options] {
      auto code = run_head(*options, context.signals);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
