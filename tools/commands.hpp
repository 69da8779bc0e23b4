#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "actors/train/node_context.hpp"
#include "runtime/cluster/runtime.hpp"
#include "tools/signals.hpp"

namespace troupe::tool {

/// What an option in seconds means.
inline Duration from_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// What every command gets.
struct Context {
  Signals& signals;
  std::function<int()> run;  ///< set by the command that was chosen
};

/// Options of commands that are a node or talk to one.
struct NodeOptions {
  std::string name;
  std::string listen = "127.0.0.1:0";
  std::string head;   ///< one address, or several with commas between
  std::string token;  ///< before --token-file and TROUPE_TOKEN in the environment
  std::string token_file;
  std::uint32_t slots = 1;
  bool no_shared_memory = false;
  double heartbeat_period = 0.1;  ///< seconds
  double heartbeat_limit = 1.0;   ///< seconds

  void add_listen(CLI::App& app);
  void add_head(CLI::App& app);
  void add_common(CLI::App& app);

  /// Reads the token and makes the runtime's options of it, with the training actors registered.
  Result<RuntimeOptions> runtime_options(
      std::shared_ptr<train::NodeContext> context = std::make_shared<train::NodeContext>()) const;
  /// Those in `head`: one at least.
  Result<std::vector<transport::Address>> heads() const;
  /// Joins the head at one of the addresses in `head`.
  Result<std::unique_ptr<Runtime>> join(RuntimeOptions options) const;
};

void add_train(CLI::App& app, Context& context);
void add_head(CLI::App& app, Context& context);
void add_node(CLI::App& app, Context& context);
void add_submit(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_graph(CLI::App& app, Context& context);
void add_drain(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_chaos(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);

}  // namespace troupe::tool
