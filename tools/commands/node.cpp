#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

struct Options {
  NodeOptions node;
  bool quiet = false;
};

Result<int> run_node(const Options& options, Signals& signals) {
  TROUPE_ASSIGN(auto head, transport::Address::parse(options.node.head));
  TROUPE_ASSIGN(auto runtime_options, options.node.runtime_options());
  TROUPE_ASSIGN(auto runtime, Runtime::join(head, std::move(runtime_options)));
  std::atomic<bool> interrupted = false;
  signals.on_signal([&](int) {
    interrupted = true;
    runtime->stop();  // leaves in order; ends the wait below
  });
  if (!options.quiet) {
    std::printf("node %s joined the cluster of %s, listens at %s\n",
                short_name(runtime->id()).c_str(), transport::to_string(head).c_str(),
                transport::to_string(runtime->address()).c_str());
    std::fflush(stdout);
  }

  while (!interrupted && runtime->membership_status().ok())
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
  command->add_flag("--quiet", options->quiet, "print errors only");
  command->callback([&context, options] {
    context.run = [&context, options] {
      auto code = run_node(*options, context.signals);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
