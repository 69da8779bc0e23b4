#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

int main(int argc, char** argv) {
  using namespace troupe::tool;
  Signals signals;
  Context context{signals, {}};

  CLI::App app{"Troupe: exact, elastic distributed training with actors", "troupe"};
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done; 1 failed; 2 wrong input; 3 no cluster; 130 interrupted.");
  for (auto add : {add_train, add_head, add_node, add_submit, add_status, add_drain, add_graph,
                   add_bench, add_chaos, add_version})
    add(app, context);

  app.set_version_flag("--version", TROUPE_VERSION);
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_meant = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), is_meant))
    return fail({troupe::Code::invalid_argument,
                 fmt::format("there is no command '{}'; `troupe --help` lists them", argv[1])});

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kBadInput;
  }
  return context.run();
}
