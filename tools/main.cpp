#include <CLI/CLI.hpp>

#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

int main(int argc, char** argv) {
  using namespace troupe::tool;
  Signals signals;
  Context context{signals, {}};

  CLI::App app{"Troupe: exact, elastic distributed training with actors", "troupe"};
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done; 1 failed; 2 wrong input; 3 no cluster; 130 interrupted.");
  for (auto add : {add_train, add_head, add_node, add_submit, add_status, add_graph, add_bench,
                   add_chaos, add_version})
    add(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kBadInput;
  }
  return context.run();
}
