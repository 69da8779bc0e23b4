#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/models.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/philox.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/digest.hpp"

namespace troupe::kernels {
namespace {

/// What a process of its own gives.
std::string digest_of_process(const std::string& kernels) {
  const std::string command = std::string(TROUPE_DIGEST_PROGRAM) + " " + kernels;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 64> line{};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  return line.data();
}

std::string hex(std::uint64_t digest) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%016llx\n", static_cast<unsigned long long>(digest));
  return text.data();
}

TEST(Training, ends_in_the_same_weights_in_every_process) {
  for (const auto& [name, choice] :
       {std::pair{"automatic", KernelChoice::automatic}, {"library", KernelChoice::library}}) {
    const std::string here = hex(digest_of_training(choice));
    EXPECT_EQ(here, digest_of_process(name)) << name;
    EXPECT_EQ(here, digest_of_process(name)) << name;
  }
}

// Nodes of one job may have different CPUs, and a job may be resumed on others. A change of the
// kernels' order of sums changes this number; then jobs cannot be resumed across the change.
TEST(Training, of_lenet5_ends_in_these_weights_on_every_cpu) {
  EXPECT_EQ(hex(digest_of_training(KernelChoice::portable)), "1ecefe16ba84f370\n");
  EXPECT_EQ(digest_of_training(KernelChoice::automatic),
            digest_of_training(KernelChoice::portable));
}

/// Ten classes, each a bright square at a place of its own on noise.
struct Squares {
  Tensor images, labels;
  Squares(std::int64_t count, std::uint64_t seed)
      : images(Tensor::allocate(DType::u8, {count, 28, 28}).value()),
        labels(Tensor::allocate(DType::u8, {count}).value()) {
    Philox random(seed);
    auto pixels = images.data<std::uint8_t>();
    for (std::size_t n = 0; n < static_cast<std::size_t>(count); ++n) {
      const std::size_t label = random.below(10);
      labels.data<std::uint8_t>()[n] = static_cast<std::uint8_t>(label);
      auto image = pixels.subspan(n * 784, 784);
      for (auto& pixel : image) pixel = static_cast<std::uint8_t>(random.below(100));
      const std::size_t top = label / 4 * 9 + random.below(3),
                        left = label % 4 * 6 + random.below(3);
      for (std::size_t r = 0; r < 6; ++r)
        for (std::size_t c = 0; c < 5; ++c) image[(top + r) * 28 + left + c] = 255;
    }
  }
};

class TrainingOf : public testing::TestWithParam<const char*> {};

TEST_P(TrainingOf, separable_samples_reaches_a_low_loss) {
  const Model model = make_model(GetParam()).value();
  Workspace workspace = Workspace::create(model).value();
  Parameters parameters = Parameters::initialized(model, 3).value();
  const auto sgd = make_optimizer({.momentum = 0.9}, model).value();
  auto state = sgd->initial_state().value();
  Parameters gradients = Parameters::zeros(model).value();
  for (std::uint64_t step = 0; step < 100; ++step) {
    const Squares batch(64, 100 + step);
    ASSERT_TRUE(
        workspace.forward_backward(parameters, batch.images, batch.labels, gradients.values())
            .ok());
    const double learning_rate = 0.02 * std::min(1.0, static_cast<double>(step + 1) / 5.0);
    sgd->update({step + 1, learning_rate, 1.0f / 64},
                std::array{GradientRun{0, gradients.values()}}, parameters, state);
  }
  const Squares unseen(200, 1);
  const LossStats stats = workspace.evaluate(parameters, unseen.images, unseen.labels).value();
  EXPECT_LT(stats.loss_sum / 200, 0.05);
  EXPECT_GE(stats.correct, 196);
}

INSTANTIATE_TEST_SUITE_P(By, TrainingOf, testing::Values("lenet5", "mlp"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace troupe::kernels
