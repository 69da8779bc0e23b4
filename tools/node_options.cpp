#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "actors/job/register.hpp"
#include "tools/bench_actors.hpp"
#include "tools/commands.hpp"

namespace troupe::tool {
namespace {

Result<std::string> read_token(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!file || !std::getline(file, token) || token.empty())
    return Error{Code::invalid_argument,
                 fmt::format("token file '{}' has no first line to read; write the cluster's token "
                             "into it",
                             path)};
  return token;
}

}  // namespace

void NodeOptions::add_listen(CLI::App& app) {
  app.add_option("--listen", listen,
                 "HOST:PORT to listen at; port 0 picks one; beyond loopback a token is needed")
      ->capture_default_str();
}

void NodeOptions::add_head(CLI::App& app) {
  app.add_option(
         "--head", head,
         "HOST:PORT at which the cluster's head listens; several with commas between, where "
         "another may take over")
      ->required();
}

void NodeOptions::add_common(CLI::App& app) {
  app.add_option("--name", name, "a name for people");
  app.add_option("--token-file", token_file,
                 "file whose first line is the cluster's token (default: $TROUPE_TOKEN)");
  app.add_flag("--no-shared-memory", no_shared_memory, "talk TCP to nodes of the same host too");
  app.add_option("--heartbeat-period", heartbeat_period,
                 "seconds between two signs of life; the head's hold for its cluster")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 200.0));
  app.add_option("--heartbeat-limit", heartbeat_limit,
                 "seconds of silence that make a node suspect")
      ->capture_default_str()
      ->check(CLI::Range(0.2, 600.0));
}

Result<RuntimeOptions> NodeOptions::runtime_options(
    std::shared_ptr<train::NodeContext> context) const {
  RuntimeOptions options;
  if (!name.empty()) options.name = name;
  TROUPE_ASSIGN(options.listen, transport::Address::parse(listen));
  if (const char* from_environment = std::getenv("TROUPE_TOKEN")) options.token = from_environment;
  if (!token_file.empty()) {
    TROUPE_ASSIGN(options.token, read_token(token_file));
  }
  if (!token.empty()) options.token = token;
  // Later nodes connect to this one too: beyond loopback it listens where it reaches the head.
  if (listen == NodeOptions{}.listen && !head.empty() && !options.token.empty()) {
    TROUPE_ASSIGN(const auto addresses, heads());
    if (auto host = transport::local_host_towards(addresses.front()); host.ok())
      options.listen.host = std::move(*host);
  }
  options.slots = slots;
  options.shared_memory = !no_shared_memory;
  options.heartbeat_period = from_seconds(heartbeat_period);
  options.heartbeat_limit = from_seconds(heartbeat_limit);
  options.configure = [context = std::move(context)](caf::actor_system_config& config) {
    train::register_actors(config, context);
    register_bench_actors(config);
  };
  return options;
}

Result<std::vector<transport::Address>> NodeOptions::heads() const {
  std::vector<transport::Address> addresses;
  std::stringstream list(head + ',');
  for (std::string one; std::getline(list, one, ',');) {
    TROUPE_ASSIGN(auto address, transport::Address::parse(one));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

Result<std::unique_ptr<Runtime>> NodeOptions::join(RuntimeOptions options) const {
  TROUPE_ASSIGN(const auto addresses, heads());
  options.other_heads.assign(addresses.begin() + 1, addresses.end());
  return Runtime::join(addresses.front(), std::move(options));
}

}  // namespace troupe::tool
