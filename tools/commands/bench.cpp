#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/bench_actors.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/local_cluster.hpp"

namespace troupe::tool {
namespace {

struct Options {
  NodeOptions node;
  std::size_t runs = 5;
  bool json = false;
};

struct Figure {
  std::string what, unit;
  double min = 0, median = 0, max = 0;
};

Result<Figure> repeat(std::string what, std::string unit, std::size_t runs,
                      const std::function<Result<double>()>& measure) {
  TROUPE_TRY(measure());  // warm up
  std::vector<double> values;
  for (std::size_t i = 0; i < runs; ++i) {
    TROUPE_ASSIGN(double value, measure());
    values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  return Figure{std::move(what), std::move(unit), values.front(), values[values.size() / 2],
                values.back()};
}

/// Two node processes on this machine that talk over shared memory, or over TCP.
Result<std::vector<Figure>> measure(const Options& options, bool shared_memory) {
  TROUPE_ASSIGN(auto runtime_options, options.node.runtime_options());
  runtime_options.shared_memory = shared_memory;
  LocalCluster cluster;
  TROUPE_ASSIGN(auto head, cluster.start(std::move(runtime_options), 1, 1));
  TROUPE_TRY(cluster.wait_for_nodes(*head, false));
  NodeId peer;
  for (const auto& member : head->view().members)
    if (member.slots > 0) peer = member.node;
  TROUPE_ASSIGN(auto echo, head->spawn_on(peer, kEchoType, caf::make_message()));

  const std::string over = shared_memory ? "shared memory" : "TCP";
  auto& system = head->system();
  std::vector<Figure> figures;
  const auto add = [&](std::string what, const char* unit,
                       const std::function<Result<double>()>& once) -> Status {
    TROUPE_ASSIGN(auto figure, repeat(what + ", " + over, unit, options.runs, once));
    figures.push_back(std::move(figure));
    return {};
  };
  TROUPE_TRY(
      add("request and response", "us", [&] { return measure_round_trip(system, echo, 3000); }));
  TROUPE_TRY(
      add("one-way 64 B messages", "1/s", [&] { return measure_one_way(system, echo, 100000); }));
  TROUPE_TRY(add("64 MiB buffer", "GB/s",
                 [&] { return measure_bandwidth(system, echo, std::size_t{64} << 20, 10); }));
  head->stop();
  return figures;
}

void print(const std::vector<Figure>& figures, bool json) {
  if (json) {
    auto rows = nlohmann::json::array();
    for (const auto& x : figures)
      rows.push_back({{"what", x.what},
                      {"unit", x.unit},
                      {"min", x.min},
                      {"median", x.median},
                      {"max", x.max}});
    std::printf("%s\n", rows.dump(2).c_str());
    return;
  }
  std::printf("%-38s %6s %12s %12s %12s\n", "BETWEEN TWO PROCESSES", "UNIT", "MIN", "MEDIAN",
              "MAX");
  for (const auto& x : figures)
    std::printf("%-38s %6s %12.2f %12.2f %12.2f\n", x.what.c_str(), x.unit.c_str(), x.min, x.median,
                x.max);
}

Result<int> bench(const Options& options) {
  std::vector<Figure> all;
  for (bool shared_memory : {true, false}) {
    TROUPE_ASSIGN(auto figures, measure(options, shared_memory));
    all.insert(all.end(), figures.begin(), figures.end());
  }
  print(all, options.json);
  return kSuccess;
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand(
      "bench", "Measure messages and buffers between two processes of this machine");
  auto options = std::make_shared<Options>();
  command->add_option("--runs", options->runs, "measured runs of each figure, after one warm-up")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  command->add_flag("--json", options->json, "print JSON");
  command->footer("Comparisons with other systems are the programs in bench/ (make bench).");
  command->callback([&context, options] {
    context.run = [options] {
      auto code = bench(*options);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
