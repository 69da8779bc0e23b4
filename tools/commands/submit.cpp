#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "actors/config/job_config.hpp"
#include "tools/client.hpp"
#include "tools/exit_codes.hpp"
#include "tools/json_lines.hpp"
#include "tools/progress.hpp"

namespace troupe::tool {
namespace {

struct Options {
  NodeOptions node;
  std::string job;
  std::vector<std::string> overrides;
  std::uint32_t nodes = 0;
  bool resume = false;
  bool detach = false;
  bool json = false;
};

Result<int> submit(const Options& options, Signals& signals) {
  TROUPE_ASSIGN(auto config, train::load_job(options.job, options.overrides));
  TROUPE_ASSIGN(auto client, Client::connect(options.node));
  TROUPE_ASSIGN(auto job, client.ask<std::uint64_t>(
                              train::SubmitJob{config.to_toml(), options.nodes, options.resume}));
  if (!options.json) std::printf("job %lu submitted\n", static_cast<unsigned long>(job));
  std::fflush(stdout);
  if (options.detach) return kSuccess;
  const SteadyClock clock;
  Progress progress({.out = stdout,
                     .terminal = isatty(STDOUT_FILENO) == 1,
                     .log_every = config.operation.log_every},
                    clock);
  JsonLines json_lines(stdout, clock);
  const auto on_signal = signals.on_signal([&client, job](int) {
    if (!client.cancel(job))
      std::fprintf(stderr, "troupe: %s\n", Client::cancelled_later(job).c_str());
  });
  train::JobObserver& observer =
      options.json ? static_cast<train::JobObserver&>(json_lines) : progress;
  TROUPE_ASSIGN(const auto ended, client.follow(job, observer));
  if (ended.code != 0) return Error{static_cast<Code>(ended.code), ended.message};
  return kSuccess;
}

}  // namespace

void add_submit(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("submit", "Run a job on a running cluster");
  auto options = std::make_shared<Options>();
  command->add_option("job", options->job, "job file (TOML)")->required();
  options->node.add_head(*command);
  options->node.add_common(*command);
  command->add_option("--set", options->overrides, "override a key: --set optimizer.lr=0.1");
  command
      ->add_option("--nodes", options->nodes, "use so many of the cluster's nodes at most; 0: all")
      ->capture_default_str();
  command->add_flag("--resume", options->resume, "go on from the newest checkpoint");
  command->add_flag("--detach", options->detach, "do not wait for the job to end");
  command->add_flag("--json", options->json, "print each event as a line of JSON");
  command->callback([&context, options] {
    context.run = [&context, options] {
      auto code = submit(*options, context.signals);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
