// Samples per second of a model's training step in one process: forward, backward and SGD with
// momentum. With --predict of a prediction: forward only, by the running statistics.
//
// The same as peers/torch_step.py: random u8 images in memory, normalised in the step. Warms up,
// then prints the median, slowest and fastest of several windows, and the most memory that the
// process had resident.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/models.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/philox.hpp"
#include "kernels/workspace.hpp"

namespace troupe {
namespace {

using namespace kernels;  // NOLINT: a program of its own

struct Options {
  std::vector<std::int64_t> batches = {64, 128, 256};
  int threads = 1;
  int windows = 9;
  double window_seconds = 0.5;
  std::string model = "lenet5";
  std::vector<std::int64_t> input = {1, 28, 28};
  std::int64_t classes = 10;
  bool small_images = false;
  std::string choice = "automatic";
  bool predict = false;
  bool json = false;
};

struct Row {
  std::int64_t batch = 0;
  double median = 0.0, slowest = 0.0, fastest = 0.0;  // samples per second
  double peak_mib = 0.0;
};

/// A rank's state between steps, and a step.
class Rank {
public:
  static Result<Rank> create(const Model& model, std::int64_t batch, WorkspaceOptions options) {
    TROUPE_ASSIGN(auto workspace, Workspace::create(model, options));
    TROUPE_ASSIGN(auto parameters, Parameters::initialized(model, 1));
    TROUPE_ASSIGN(auto sgd, make_optimizer({.momentum = 0.9}, model));
    TROUPE_ASSIGN(auto state, sgd->initial_state());
    TROUPE_ASSIGN(auto gradients, Parameters::zeros(model));
    TROUPE_ASSIGN(auto images, Tensor::allocate(DType::u8, model.input().with_first(batch)));
    TROUPE_ASSIGN(auto labels, Tensor::allocate(DType::u8, {batch}));
    Philox random(2);
    for (auto& pixel : images.data<std::uint8_t>())
      pixel = static_cast<std::uint8_t>(random.below(256));
    for (auto& label : labels.data<std::uint8_t>())
      label = static_cast<std::uint8_t>(random.below(10));
    return Rank{std::move(workspace), std::move(sgd),    std::move(state), std::move(parameters),
                std::move(gradients), std::move(images), std::move(labels)};
  }

  Result<double> step() {
    TROUPE_ASSIGN(const LossStats stats,
                  workspace.forward_backward(parameters, images, labels, gradients.values()));
    sgd->update({++steps, 0.01, 1.0f / static_cast<float>(stats.count)},
                std::array{GradientRun{0, gradients.values()}}, parameters, state);
    return stats.loss_sum / static_cast<double>(stats.count);
  }

  /// A number of the prediction, which is not finite if any of the outputs is not.
  Result<double> predict() {
    TROUPE_ASSIGN(const Tensor outputs, workspace.predict(parameters, images));
    double sum = 0.0;
    for (const float output : outputs.data<float>()) sum += static_cast<double>(output);
    return sum;
  }

  Workspace workspace;
  std::unique_ptr<Optimizer> sgd;
  std::vector<Parameters> state;
  Parameters parameters, gradients;
  Tensor images, labels;
  std::uint64_t steps = 0;
};

double seconds_of(const auto& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Memory that was resident at most, in MiB.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0.0;
}

Result<Row> measure(const Model& model, std::int64_t batch, const Options& options) {
  WorkspaceOptions workspace;
  workspace.threads = options.threads;
  workspace.kernels = options.choice == "portable"  ? KernelChoice::portable
                      : options.choice == "library" ? KernelChoice::library
                                                    : KernelChoice::automatic;
  TROUPE_ASSIGN(Rank rank, Rank::create(model, batch, workspace));
  double number = 0.0;
  Status failed;
  const auto steps = [&](int count) {
    for (int i = 0; i < count && failed.ok(); ++i) {
      const auto result = options.predict ? rank.predict() : rank.step();
      failed = result.status();
      if (result.ok()) number = *result;
    }
  };
  steps(2);
  const double step_seconds = seconds_of([&] { steps(2); }) / 2;
  const int count = std::max(1, static_cast<int>(options.window_seconds / step_seconds));
  std::vector<double> rates;
  for (int window = 0; window < options.windows; ++window)
    rates.push_back(static_cast<double>(batch) * count / seconds_of([&] { steps(count); }));
  TROUPE_TRY(failed);
  if (!std::isfinite(number))
    return Error{
        Code::internal,
        fmt::format("the {} {}", options.predict ? "outputs add up to" : "loss is", number)};
  std::ranges::sort(rates);
  return Row{batch, rates[rates.size() / 2], rates.front(), rates.back(), peak_mib()};
}

void print(const std::vector<Row>& rows, const Options& options) {
  if (!options.json) {
    fmt::print("{}, {}, {} thread(s), {} kernels\n{:>6} {:>12} {:>12} {:>12} {:>10}\n",
               options.model, options.predict ? "prediction" : "training step", options.threads,
               options.choice, "batch", "samples/s", "slowest", "fastest", "peak MiB");
    for (const Row& row : rows)
      fmt::print("{:>6} {:>12.1f} {:>12.1f} {:>12.1f} {:>10.0f}\n", row.batch, row.median,
                 row.slowest, row.fastest, row.peak_mib);
    return;
  }
  nlohmann::json out = nlohmann::json::array();
  for (const Row& row : rows)
    out.push_back({{"program", "model_bench"},
                   {"predict", options.predict},
                   {"model", options.model},
                   {"kernels", options.choice},
                   {"processes", 1},
                   {"threads", options.threads},
                   {"batch_per_process", row.batch},
                   {"samples_per_second", row.median},
                   {"peak_mib", row.peak_mib},
                   {"slowest", row.slowest},
                   {"fastest", row.fastest},
                   {"windows", options.windows}});
  fmt::print("{}\n", out.dump());
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Samples per second of a model's training step, or prediction, in one process");
  app.add_option("--batch", options.batches, "samples per step; several are measured in turn")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--windows", options.windows)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--window-seconds", options.window_seconds)
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--model", options.model)->capture_default_str();
  app.add_option("--input", options.input, "channels, height and width of a sample")
      ->expected(3)
      ->capture_default_str();
  app.add_option("--classes", options.classes)->capture_default_str();
  app.add_flag("--small-images", options.small_images, "resnet: the first layer for small images");
  app.add_option("--kernels", options.choice)
      ->check(CLI::IsMember({"automatic", "portable", "library"}))
      ->capture_default_str();
  app.add_flag("--predict", options.predict, "measure a prediction, not a training step");
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);

  ModelConfig config;
  config.input = Shape::checked(options.input).value();
  config.classes = options.classes;
  config.small_images = options.small_images;
  const auto model = make_model(options.model, config);
  if (!model.ok()) {
    fmt::print(stderr, "model_bench: {}\n", model.error().message);
    return 1;
  }
  std::vector<Row> rows;
  for (std::int64_t batch : options.batches) {
    const auto row = measure(*model, batch, options);
    if (!row.ok()) {
      fmt::print(stderr, "model_bench: {}\n", row.error().message);
      return 1;
    }
    rows.push_back(*row);
  }
  print(rows, options);
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return troupe::run(argc, argv);
}
