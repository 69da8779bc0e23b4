// Tokens per second of a training step of a GPT-2-style decoder in one process: forward, backward
// and AdamW. With --predict of a prediction: forward only, with the logits of every token.
//
// The same as peers/gpt.py: random token ids. Warms up, then prints the median, slowest and
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
  bool predict = false;
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

/// Times `pass`, which gives a mean loss, and looks after the losses: they begin as that of a
/// guess, and do not rise.
Result<Row> time_passes(const Options& options, const auto& pass) {
  const auto vocabulary = static_cast<std::uint64_t>(options.size.vocabulary);
  std::vector<double> rates;
  double first_loss = 0.0;
  for (int i = -2; i < options.passes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const double loss, pass());
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (i == -2) first_loss = loss;
    TROUPE_TRY(check_loss(loss, first_loss, vocabulary));
    if (i >= 0)
      rates.push_back(static_cast<double>(options.batch * options.size.context) / time.count());
  }
  std::ranges::sort(rates);
  return Row{rates[rates.size() / 2], rates.front(), rates.back(), peak_mib()};
}

Result<Tensor> random_tokens(const Options& options, Philox& random) {
  TROUPE_ASSIGN(auto ids, Tensor::allocate(DType::i32, Shape{options.batch, options.size.context}));
  for (auto& id : ids.data<std::int32_t>())
    id = static_cast<std::int32_t>(
        random.below(static_cast<std::uint64_t>(options.size.vocabulary)));
  return ids;
}

/// The first token's loss, the mean over what its label may be: little work beside the prediction.
double loss_of(const Tensor& logits, std::int64_t vocabulary) {
  const auto row = logits.data<float>().first(static_cast<std::size_t>(vocabulary));
  double exponentials = 0.0, sum = 0.0;
  for (const float logit : row) {
    exponentials += std::exp(static_cast<double>(logit));
    sum += static_cast<double>(logit);
  }
  return std::log(exponentials) - sum / static_cast<double>(vocabulary);
}

Result<Row> measure(const Options& options) {
  TROUPE_ASSIGN(const Model model, make_model("gpt", {.gpt = options.size}));
  TROUPE_ASSIGN(auto workspace, Workspace::create(model, {.threads = options.threads}));
  TROUPE_ASSIGN(auto parameters, Parameters::initialized(model, 1));
  Philox random(2);
  TROUPE_ASSIGN(const auto ids, random_tokens(options, random));
  if (options.predict)
    return time_passes(options, [&]() -> Result<double> {
      TROUPE_ASSIGN(const Tensor logits, workspace.predict(parameters, ids));
      return loss_of(logits, options.size.vocabulary);
    });
  TROUPE_ASSIGN(auto adamw, make_optimizer({.name = "adamw", .weight_decay = 0.1}, model));
  TROUPE_ASSIGN(auto state, adamw->initial_state());
  TROUPE_ASSIGN(auto gradients, Parameters::zeros(model));
  TROUPE_ASSIGN(const auto labels, random_tokens(options, random));
  std::uint64_t steps = 0;
  return time_passes(options, [&]() -> Result<double> {
    TROUPE_ASSIGN(const LossStats stats,
                  workspace.forward_backward(parameters, ids, labels, gradients.values()));
    adamw->update({++steps, 1e-4, 1.0f / static_cast<float>(stats.count)},
                  std::array{GradientRun{0, gradients.values()}}, parameters, state);
    return stats.loss_sum / static_cast<double>(stats.count);
  });
}

void print(const Row& row, const Options& options) {
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"predict", options.predict},
                                      {"threads", options.threads},
                                      {"batch", options.batch},
                                      {"vocabulary", options.size.vocabulary},
                                      {"tokens_per_second", row.median},
                                      {"slowest", row.slowest},
                                      {"fastest", row.fastest},
                                      {"peak_mib", row.peak_mib}}
                           .dump());
    return;
  }
  fmt::print("gpt, {}, {} layers of {}, {} tokens, batch {}, {} thread(s)\n",
             options.predict ? "prediction" : "training step", options.size.layers,
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
  CLI::App app("Tokens per second of a decoder's training step, or prediction");
  app.add_option("--layers", options.size.layers)->capture_default_str();
  app.add_option("--heads", options.size.heads)->capture_default_str();
  app.add_option("--width", options.size.width)->capture_default_str();
  app.add_option("--context", options.size.context)->capture_default_str();
  app.add_option("--vocabulary", options.size.vocabulary)->capture_default_str();
  app.add_option("--batch", options.batch)->capture_default_str();
  app.add_option("--threads", options.threads)->capture_default_str();
  app.add_option("--passes", options.passes)->capture_default_str();
  app.add_flag("--predict", options.predict, "measure a prediction, not a training step");
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  const auto row = troupe::measure(options);
  if (!row.ok()) {
    fmt::print(stderr, "gpt_bench: {}\n", to_string(row.error()));
    return 1;
  }
  troupe::print(*row, options);
}
