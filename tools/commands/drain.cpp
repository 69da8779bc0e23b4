#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "tools/client.hpp"
#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

struct Options {
  NodeOptions node;
  std::string name;
  double timeout = 60;  ///< seconds
};

/// The member of that name, or whose id begins so.
Result<Member> find(const View& view, const std::string& name) {
  const auto is_it = [&](const Member& member) {
    return member.name == name || (name.size() >= 4 && to_string(member.node).starts_with(name));
  };
  const auto count = std::count_if(view.members.begin(), view.members.end(), is_it);
  if (count == 1) return *std::find_if(view.members.begin(), view.members.end(), is_it);
  return Error{count == 0 ? Code::not_found : Code::invalid_argument,
               fmt::format("{} node is called '{}', or has an id that begins so; `troupe status` "
                           "lists names and ids",
                           count == 0 ? "no" : "more than one", name)};
}

Result<int> drain(const Options& options) {
  TROUPE_ASSIGN(auto client, Client::connect(options.node));
  TROUPE_ASSIGN(const Member member, find(client.runtime->view(), options.name));
  TROUPE_TRY(client.runtime->drain(member.node));
  const auto until = std::chrono::steady_clock::now() + from_seconds(options.timeout);
  while (client.runtime->view().find(member.node) != nullptr) {
    if (client.runtime->wait_until_out(std::chrono::milliseconds(20)).ok())
      return client.runtime->membership_status().error();
    if (std::chrono::steady_clock::now() > until)
      return Error{Code::deadline_exceeded,
                   fmt::format("node '{}' gets no new work, but has not left within {} s; it goes "
                               "when others have taken over what it has",
                               member.name, options.timeout)};
  }
  std::printf("node '%s' has left\n", member.name.c_str());
  return kSuccess;
}

}  // namespace

void add_drain(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand(
      "drain", "Have a node leave once others have taken over its work, and wait for it");
  auto options = std::make_shared<Options>();
  command->add_option("node", options->name, "name of the node, or the beginning of its id")
      ->required();
  options->node.add_head(*command);
  options->node.add_common(*command);
  command->add_option("--timeout", options->timeout, "seconds to wait until it has left")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command->callback([&context, options] {
    context.run = [options] {
      auto code = drain(*options);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
