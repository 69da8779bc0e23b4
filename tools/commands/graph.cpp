#include <cstdio>

#include "actors/config/job_config.hpp"
#include "actors/job/job_graph.hpp"
#include "runtime/graph/print.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

struct Options {
  std::string job;
  std::vector<std::string> overrides;
  bool dot = false;
};

Result<int> print_graph(const Options& options) {
  TROUPE_ASSIGN(auto config, train::load_job(options.job, options.overrides));
  const auto graph = train::job_graph(config);
  std::fputs((options.dot ? graph::to_dot(*graph) : graph::to_text(*graph)).c_str(), stdout);
  return kSuccess;
}

}  // namespace

void add_graph(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("graph", "Print a job's actors and how they are connected");
  auto options = std::make_shared<Options>();
  command->add_option("job", options->job, "job file (TOML)")->required();
  command->add_option("--set", options->overrides, "override a key: --set job.ranks=4");
  command->add_flag("--dot", options->dot, "as DOT, for Graphviz");
  command->callback([&context, options] {
    context.run = [options] {
      auto code = print_graph(*options);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
