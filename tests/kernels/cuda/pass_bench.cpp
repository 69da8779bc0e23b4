// Passes of models on a device (TROUPE_TEST_DEVICE, or cuda) as a job does them: forward, backward
// and loss, with weights that lie there and gradients brought back. Warms up, looks whether the
// results are numbers and the same each time, and prints the median and the spread.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/internal/backend.hpp"
#include "kernels/models.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/parameters.hpp"
#include "kernels/philox.hpp"
#include "kernels/training_state.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

struct Case {
  std::string name;
  ModelConfig config;
  std::int64_t batch;
  DType precision = DType::f32;
};

Tensor random_tensor(DType dtype, Shape shape, std::uint64_t below) {
  Tensor made = Tensor::allocate(dtype, shape).value();
  Philox random(3);
  if (dtype == DType::u8)
    for (auto& value : made.data<std::uint8_t>())
      value = static_cast<std::uint8_t>(random.below(below));
  else
    for (auto& value : made.data<std::int32_t>())
      value = static_cast<std::int32_t>(random.below(below));
  return made;
}

Status measure(const ComputeDevice& device, const Case& test) {
  constexpr int kWarmUp = 3, kPasses = 15;
  TROUPE_ASSIGN(const Model model, make_model(test.name, test.config));
  WorkspaceOptions options;
  options.device = device;
  options.precision = test.precision;
  TROUPE_ASSIGN(Workspace workspace, Workspace::create(model, options));
  TROUPE_ASSIGN(Parameters parameters, Parameters::initialized(model, 1));
  TROUPE_ASSIGN(auto optimizer, make_optimizer({}, model));
  TROUPE_ASSIGN(const TrainingState state,
                TrainingState::create(device, std::move(optimizer), {std::move(parameters), {}}));
  const bool ids = model.input_dtype() == DType::i32;
  const Tensor samples =
      random_tensor(ids ? DType::i32 : DType::u8, model.input().with_first(test.batch),
                    ids ? static_cast<std::uint64_t>(model.vocabulary()) : 256);
  const Tensor labels = random_tensor(DType::i32, {test.batch * model.labels_per_sample()}, 10);
  std::vector<float> gradients(model.flat_size());
  std::vector<double> seconds;
  double loss = 0.0;
  for (int pass = 0; pass < kWarmUp + kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const LossStats stats,
                  workspace.forward_backward(state.weights(), samples, labels, gradients));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!std::isfinite(stats.loss_sum) || (pass > 0 && stats.loss_sum != loss))
      return {Code::internal,
              fmt::format("{}: the loss is {}, and was {}", test.name, stats.loss_sum, loss)};
    loss = stats.loss_sum;
    if (pass >= kWarmUp) seconds.push_back(took.count());
  }
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  const std::int64_t items = test.batch * model.labels_per_sample();
  fmt::print("{:<10} {:<5} {:>6} {:>12.1f} {:<9} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.0f}\n",
             test.name, to_string(test.precision), test.batch, static_cast<double>(items) / median,
             ids ? "tokens/s" : "images/s", 1e3 * median, 1e3 * seconds.front(),
             1e3 * seconds.back(), static_cast<double>(device.memory().most_used) / (1 << 20));
  const PassStatistics& passes = workspace.statistics();
  if (passes.replayed == 0)
    fmt::print("  kernel by kernel{}{}\n", passes.not_recorded.empty() ? "" : ": ",
               passes.not_recorded);
  return {};
}

Status run() {
  TROUPE_ASSIGN(const ComputeDevice device, test_device());
  fmt::print("{}: {}\n{:<10} {:<5} {:>6} {:>12} {:<9} {:>10} {:>10} {:>10} {:>10}\n",
             to_string(device.name()), device.backend().library_variant(), "model", "", "batch",
             "median", "", "median ms", "least ms", "most ms", "most MiB");
  // The last two are bench/peers/gpu_pass.py's too.
  const ModelConfig images{.input = {3, 224, 224}, .classes = 1000};
  for (const DType precision : {DType::f32, DType::bf16})
    for (const Case& test :
         {Case{"lenet5", {}, 256, precision},
          Case{"resnet18", {.input = {3, 32, 32}, .small_images = true}, 128, precision},
          Case{"resnet50", images, 64, precision}, Case{"gpt", {}, 4, precision}})
      TROUPE_TRY(measure(device, test));
  return {};
}

}  // namespace
}  // namespace troupe::kernels

int main() {
  setenv("TROUPE_TEST_DEVICE", "cuda", /*overwrite=*/0);
  const troupe::Status done = troupe::kernels::run();
  if (done.ok()) return 0;
  std::fprintf(stderr, "pass_bench: %s\n", troupe::to_string(done.error()).c_str());
  return 1;
}
