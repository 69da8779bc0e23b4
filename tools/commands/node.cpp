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
  double join_timeout = 10;   ///< seconds
  double drain_timeout = 25;  ///< seconds
};

Result<int> run_node(const Options& options, Signals& signals) {
  const auto context = std::make_shared<train::NodeContext>();
  TROUPE_ASSIGN(auto runtime_options, options.node.runtime_options(context));
  runtime_options.wait_for_head = true;
  runtime_options.join_timeout =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.join_timeout));
  TROUPE_ASSIGN(auto runtime, options.node.join(std::move(runtime_options)));
  std::atomic<bool> interrupted = false;
  Drainer drainer(
      *runtime, [context] { return context->idle(); },
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.drain_timeout)));
  signals.on_signal([&](int) {
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
  command->add_flag("--quiet", options->quiet, "print errors only");
  command->callback([&context, options] {
    context.run = [&context, options] {
      auto code = run_node(*options, context.signals);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
