// Tokens per second of a training step of a GPT-2-style decoder in one process: forward, backward
// and AdamW.
//
// The same step as peers/gpt.py: random token ids. Warms up, then prints the median, slowest and
// fastest of several passes, and the most memory that the process had resident. Checks that the
// loss begins as that of a guess, and falls.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
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
  GptSize size{.layers = 6, .heads = 6, .width = 384, .context = 256, .vocabulary = 256};
  std::int64_t batch = 8;
  int threads = 2;
  int passes = 9;
  bool json = false;
};

struct Row {
  double median = 0.0, slowest = 0.0, fastest = 0.0;  // tokens per second
  double peak_mib = 0.0;
};

/// Memory that was resident at most, in MiB.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0.0;
}

Status check_loss(double loss, double first, std::uint64_t vocabulary) {
  const double guess = std::log(static_cast<double>(vocabulary));
  if (std::abs(first - guess) < 0.5 && loss <= first) return {};
  return {Code::internal,
          fmt::format("the loss was {} and is {}; that of a guess is {}", first, loss, guess)};
}

Result<Row> measure(const Options& options) {
  TROUPE_ASSIGN(const Model model, make_model("gpt", {.gpt = options.size}));
  TROUPE_ASSIGN(auto workspace, Workspace::create(model, {.threads = options.threads}));
  TROUPE_ASSIGN(auto parameters, Parameters::initialized(model, 1));
  TROUPE_ASSIGN(auto adamw, make_optimizer({.name = "adamw", .weight_decay = 0.1}, model));
  TROUPE_ASSIGN(auto state, adamw->initial_state());
  TROUPE_ASSIGN(auto gradients, Parameters::zeros(model));
  const Shape shape{options.batch, options.size.context};
  TROUPE_ASSIGN(auto ids, Tensor::allocate(DType::i32, shape));
  TROUPE_ASSIGN(auto labels, Tensor::allocate(DType::i32, shape));
  Philox random(2);
  const auto vocabulary = static_cast<std::uint64_t>(options.size.vocabulary);
  for (Tensor* tensor : {&ids, &labels})
    for (auto& id : tensor->data<std::int32_t>())
      id = static_cast<std::int32_t>(random.below(vocabulary));
  const auto tokens = static_cast<double>(shape.elements());
  std::vector<double> rates;
  double first_loss = 0.0;
  std::uint64_t steps = 0;
  for (int pass = -2; pass < options.passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const LossStats stats,
                  workspace.forward_backward(parameters, ids, labels, gradients.values()));
    adamw->update({++steps, 1e-4, 1.0f / static_cast<float>(stats.count)},
                  std::array{GradientRun{0, gradients.values()}}, parameters, state);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    const double loss = stats.loss_sum / tokens;
    if (steps == 1) first_loss = loss;
    TROUPE_TRY(check_loss(loss, first_loss, vocabulary));
    if (pass >= 0) rates.push_back(tokens / time.count());
  }
  std::ranges::sort(rates);
  return Row{rates[rates.size() / 2], rates.front(), rates.back(), peak_mib()};
}

void print(const Row& row, const Options& options) {
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"threads", options.threads},
                                      {"batch", options.batch},
                                      {"vocabulary", options.size.vocabulary},
                                      {"tokens_per_second", row.median},
                                      {"slowest", row.slowest},
                                      {"fastest", row.fastest},
                                      {"peak_mib", row.peak_mib}}
                           .dump());
    return;
  }
  fmt::print("gpt, {} layers of {}, {} tokens, batch {}, {} thread(s)\n", options.size.layers,
             options.size.width, options.size.context, options.batch, options.threads);
  fmt::print("{:>10} {:>12} {:>12} {:>12} {:>10}\n", "vocabulary", "tokens/s", "slowest", "fastest",
             "peak MiB");
  fmt::print("{:>10} {:>12.0f} {:>12.0f} {:>12.0f} {:>10.0f}\n", options.size.vocabulary,
             row.median, row.slowest, row.fastest, row.peak_mib);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::Options options;
  CLI::App app("Tokens per second of a decoder's training step");
  app.add_option("--layers", options.size.layers)->capture_default_str();
  app.add_option("--heads", options.size.heads)->capture_default_str();
  app.add_option("--width", options.size.width)->capture_default_str();
  app.add_option("--context", options.size.context)->capture_default_str();
  app.add_option("--vocabulary", options.size.vocabulary)->capture_default_str();
  app.add_option("--batch", options.batch)->capture_default_str();
  app.add_option("--threads", options.threads)->capture_default_str();
  app.add_option("--passes", options.passes)->capture_default_str();
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  const auto row = troupe::measure(options);
  if (!row.ok()) {
    fmt::print(stderr, "gpt_bench: {}\n", to_string(row.error()));
    return 1;
  }
  troupe::print(*row, options);
}
