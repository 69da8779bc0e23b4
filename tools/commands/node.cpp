#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/drainer.hpp"
#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

struct Options {
  NodeOptions node;
  bool quiet = false;
  bool no_rejoin = false;
  double join_timeout = 10;   ///< seconds
  double drain_timeout = 25;  ///< seconds
};

/// Works for the cluster until it is out, and says how it ended.
Result<int> run_once(const Options& options, Signals& signals) {
  const auto context = std::make_shared<train::NodeContext>();
  TROUPE_ASSIGN(auto runtime_options, options.node.runtime_options(context));
  runtime_options.wait_for_head = true;
  runtime_options.join_timeout = from_seconds(options.join_timeout);
  auto joined = options.node.join(std::move(runtime_options));
  // It was told so while it joined.
  if (joined.code() == Code::cancelled) return kSuccess;
  TROUPE_ASSIGN(auto runtime, std::move(joined));
  std::atomic<bool> interrupted = false;
  Drainer drainer(
      *runtime, [context] { return context->idle(); }, from_seconds(options.drain_timeout));
  const auto on_signal = signals.on_signal([&](int) {
    interrupted = true;
    drainer.drain();  // ends the wait below when it is done
  });
  if (!options.quiet) {
    std::printf("node %s joined the cluster of %s, listens at %s\n",
                short_name(runtime->id()).c_str(), options.node.head.c_str(),
                transport::to_string(runtime->address()).c_str());
    std::fflush(stdout);
  }

  while (runtime->membership_status().ok())
    (void)runtime->wait_until_out(std::chrono::seconds(3600));

  const Status status = runtime->membership_status();
  runtime->stop();
  if (interrupted || status.ok() || status.code() == Code::cancelled) {
    if (!options.quiet) std::printf("left the cluster\n");
    return kSuccess;
  }
  return status.error();
}

/// One that was put out comes back as a new node.
Result<int> run_node(const Options& options, Signals& signals) {
  for (;;) {
    auto code = run_once(options, signals);
    if (code.code() != Code::stale_generation || options.no_rejoin) return code;
    std::fprintf(stderr, "troupe: %s\ntroupe: joining as a new node\n",
                 code.error().message.c_str());
  }
}

}  // namespace

void add_node(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("node", "Join a cluster and work for it until told to stop");
  auto options = std::make_shared<Options>();
  options->node.add_head(*command);
  options->node.add_listen(*command);
  options->node.add_common(*command);
  command->add_option("--slots", options->node.slots, "ranks computed at the same time here")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1024u));
  command
      ->add_option("--join-timeout", options->join_timeout,
                   "seconds to wait for a head and to get in")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 1e6));
  command
      ->add_option("--drain-timeout", options->drain_timeout,
                   "seconds, after it was told to stop, in which others take over its work")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command->add_flag("--no-rejoin", options->no_rejoin,
                    "end when it was put out of the cluster, instead of joining as a new node");
  command->add_flag("--quiet", options->quiet, "print errors only");
  command->callback([&context, options] {
    context.run = [&context, options] {
      auto code = run_node(*options, context.signals);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
