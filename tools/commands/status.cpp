#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/client.hpp"
#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

struct Options {
  NodeOptions node;
  bool json = false;
};

bool shown(const View& view, NodeId self, const Member& member) {
  return member.node != self && (member.slots > 0 || member.node == view.head);
}

void print_text(const View& view, NodeId self, const train::JobTable& table) {
  std::printf("generation %lu\n", static_cast<unsigned long>(view.generation));
  std::printf("%-16s %-10s %-22s %8s %6s\n", "NODE", "ID", "ADDRESS", "PROCESS", "SLOTS");
  for (const auto& member : view.members) {
    if (!shown(view, self, member)) continue;
    const bool head = member.node == view.head;
    std::printf("%-16s %-10s %-22s %8u %6s%s\n", member.name.c_str(),
                short_name(member.node).c_str(), transport::to_string(member.address).c_str(),
                member.process, head ? "head" : std::to_string(member.slots).c_str(),
                member.draining ? "  draining" : "");
  }
  if (table.jobs.empty()) {
    std::printf("no jobs\n");
    return;
  }
  std::printf("%-5s %-16s %-10s %14s %9s %9s  %s\n", "JOB", "NAME", "STATE", "STEP", "LOSS", "TEST",
              "");
  for (const auto& job : table.jobs)
    std::printf(
        "%-5lu %-16s %-10s %14s %9.4f %9s  %s\n", static_cast<unsigned long>(job.job),
        job.name.c_str(), job.state.c_str(), fmt::format("{}/{}", job.step, job.steps).c_str(),
        job.loss,
        job.test_accuracy < 0 ? "-" : fmt::format("{:.2f}%", 100 * job.test_accuracy).c_str(),
        job.message.c_str());
}

void print_json(const View& view, NodeId self, const train::JobTable& table) {
  auto root = nlohmann::json{{"generation", view.generation},
                             {"nodes", nlohmann::json::array()},
                             {"jobs", nlohmann::json::array()}};
  for (const auto& member : view.members)
    if (shown(view, self, member))
      root["nodes"].push_back({{"name", member.name},
                               {"id", to_string(member.node)},
                               {"address", transport::to_string(member.address)},
                               {"process", member.process},
                               {"slots", member.slots},
                               {"draining", member.draining},
                               {"head", member.node == view.head}});
  for (const auto& job : table.jobs)
    root["jobs"].push_back({{"job", job.job},
                            {"name", job.name},
                            {"state", job.state},
                            {"step", job.step},
                            {"steps", job.steps},
                            {"loss", job.loss},
                            {"test_accuracy", job.test_accuracy},
                            {"message", job.message}});
  std::printf("%s\n", root.dump(2).c_str());
}

Result<int> status(const Options& options) {
  TROUPE_ASSIGN(auto client, Client::connect(options.node));
  TROUPE_ASSIGN(auto table, client.ask<train::JobTable>(train::ListJobs{}));
  const auto print = options.json ? print_json : print_text;
  print(client.runtime->view(), client.runtime->id(), table);
  return kSuccess;
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("status", "Show a cluster's nodes and jobs");
  auto options = std::make_shared<Options>();
  options->node.add_head(*command);
  options->node.add_common(*command);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([&context, options] {
    context.run = [options] {
      auto code = status(*options);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
