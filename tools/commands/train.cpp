#include <algorithm>
#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "actors/config/job_config.hpp"
#include "actors/job/job_runner.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/json_lines.hpp"
#include "tools/local_cluster.hpp"
#include "tools/progress.hpp"

namespace troupe::tool {
namespace {

struct Options {
  NodeOptions node;
  std::string job;
  std::vector<std::string> overrides;
  std::size_t nodes = 1;
  std::uint32_t slots = 0;
  bool resume = false;
  bool print_config = false;
  bool json = false;
};

/// Slots of each of `nodes` local nodes when none were asked for: the machine's cores shared out.
std::uint32_t default_slots(std::size_t nodes) {
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, cores / nodes));
}

/// Starts head and nodes, runs the job, ends them all.
Result<int> train(const Options& options, Signals& signals) {
  TROUPE_ASSIGN(auto config, train::load_job(options.job, options.overrides));
  if (options.print_config) {
    std::fputs(config.to_toml().c_str(), stdout);
    return kSuccess;
  }
  TROUPE_ASSIGN(auto runtime_options, options.node.runtime_options());
  LocalCluster cluster;  // ends after the head: the nodes leave when it stops
  TROUPE_ASSIGN(auto head,
                cluster.start(std::move(runtime_options), options.nodes,
                              options.slots > 0 ? options.slots : default_slots(options.nodes)));

  const SteadyClock clock;
  const std::uint64_t log_every = config.operation.log_every;
  Progress progress({.out = stdout, .terminal = isatty(STDOUT_FILENO) == 1, .log_every = log_every},
                    clock);
  JsonLines json_lines(stdout, clock);
  train::JobObserver& observer =
      options.json ? static_cast<train::JobObserver&>(json_lines) : progress;
  train::JobRunner runner(*head, std::move(config), {.resume = options.resume}, observer);
  std::atomic<bool> interrupted = false;
  const auto on_signal = signals.on_signal([&](int) {
    interrupted = true;
    runner.cancel();
  });

  TROUPE_TRY(cluster.wait_for_nodes(*head, interrupted));
  TROUPE_TRY(runner.run());
  head->stop();
  return kSuccess;
}

}  // namespace

void add_train(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("train", "Run a job on a cluster of node processes on this machine");
  auto options = std::make_shared<Options>();
  command->add_option("job", options->job, "job file (TOML)")->required();
  command->add_option("--nodes", options->nodes, "node processes to start")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1024}));
  command->add_option("--set", options->overrides, "override a key: --set optimizer.lr=0.1");
  command
      ->add_option("--slots", options->slots,
                   "ranks each node computes at the same time; 0: cores / nodes")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1024u));
  command->add_flag("--resume", options->resume, "go on from the newest checkpoint");
  command->add_flag("--print-config", options->print_config,
                    "print the whole configuration as TOML and stop");
  command->add_flag("--json", options->json, "print each event as a line of JSON");
  options->node.add_listen(*command);
  options->node.add_common(*command);
  command->callback([&context, options] {
    context.run = [&context, options] {
      auto code = train(*options, context.signals);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
