#include "tests/kernels/digest.hpp"

#include <array>

#include "kernels/models.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/philox.hpp"

namespace troupe::kernels {

std::uint64_t digest_of(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::byte byte : std::as_bytes(values))
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

std::uint64_t digest_of_training(KernelChoice kernels) {
  constexpr std::int64_t kBatch = 20;
  const Model model = make_model("lenet5").value();
  Workspace workspace = Workspace::create(model, {.kernels = kernels}).value();
  Parameters parameters = Parameters::initialized(model, 1).value();
  const auto sgd = make_optimizer({.momentum = 0.9, .weight_decay = 1e-4}, model).value();
  auto state = sgd->initial_state().value();
  Parameters gradients = Parameters::zeros(model).value();
  Tensor images = Tensor::allocate(DType::u8, {kBatch, 28, 28}).value();
  Tensor labels = Tensor::allocate(DType::i32, {kBatch}).value();
  for (std::uint64_t step = 0; step < 5; ++step) {
    Philox random(2, {step});
    for (auto& pixel : images.data<std::uint8_t>())
      pixel = static_cast<std::uint8_t>(random.below(256));
    for (auto& label : labels.data<std::int32_t>())
      label = static_cast<std::int32_t>(random.below(10));
    const auto stats =
        workspace.forward_backward(parameters, images, labels, gradients.values()).value();
    sgd->update({step + 1, 0.05, 1.0f / static_cast<float>(stats.count)},
                std::array{GradientRun{0, gradients.values()}}, parameters, state);
  }
  return digest_of(parameters.values());
}

}  // namespace troupe::kernels
