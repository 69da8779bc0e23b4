#include <array>

#include <fmt/format.h>

#include "kernels/internal/models.hpp"

namespace troupe::kernels::models {
namespace {

constexpr std::array<std::int64_t, 5> kConvolutions = {2, 2, 3, 3, 3};  // of each stage
constexpr std::array<std::int64_t, 5> kChannels = {1, 2, 4, 8, 8};      // times the width
constexpr std::int64_t kHidden = 64;                                    // times the width
constexpr std::int64_t kPooled = 7;                                     // pixels a side

/// The layers of torchvision's `features`, whose numbers are their places in it.
std::vector<LayerSpec> features(const ModelConfig& config, bool normalized) {
  std::vector<LayerSpec> layers;
  const auto name = [&] { return fmt::format("features.{}", layers.size()); };
  for (std::size_t stage = 0; stage < kConvolutions.size(); ++stage) {
    const std::int64_t channels = kChannels[stage] * config.width;
    for (std::int64_t i = 0; i < kConvolutions[stage]; ++i) {
      layers.emplace_back(Convolution{.name = name(),
                                      .out_channels = channels,
                                      .kernel = 3,
                                      .padding = 1,
                                      .initial = Initial::by_fan_out(channels * 9),
                                      .initial_bias = Initial::constant(0.0f)});
      if (normalized)
        layers.emplace_back(
            BatchNorm{.name = name(), .synchronized = config.synchronized_batch_norm});
      layers.emplace_back(Relu{});
    }
    layers.emplace_back(Pooling{});
  }
  return layers;
}

LayerSpec linear(std::string name, std::int64_t out) {
  return Linear{.name = std::move(name),
                .out_features = out,
                .initial = Initial::normal(0.01f),
                .initial_bias = Initial::constant(0.0f)};
}

}  // namespace

Result<Model> vgg16(bool normalized, const ModelConfig& config) {
  const std::string name = normalized ? "vgg16_bn" : "vgg16";
  if (config.input.rank() != 3)
    return Error{Code::shape_mismatch,
                 fmt::format("model '{}' needs input [channels, height, width], not {}", name,
                             to_string(config.input))};
  std::vector<LayerSpec> layers = features(config, normalized);
  layers.emplace_back(AdaptivePooling{Pooling::Kind::average, kPooled, kPooled});
  layers.emplace_back(Flatten{});
  for (const char* hidden : {"classifier.0", "classifier.3"}) {
    layers.push_back(linear(hidden, kHidden * config.width));
    layers.emplace_back(Relu{});
    layers.emplace_back(Dropout{0.5f});
  }
  layers.push_back(linear("classifier.6", config.classes));
  return Model::build(name, config.input, std::move(layers));
}

}  // namespace troupe::kernels::models
