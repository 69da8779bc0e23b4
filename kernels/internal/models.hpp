#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/models.hpp"

namespace troupe::kernels::models {

Result<Model> lenet5(const ModelConfig& config);
Result<Model> mlp(const ModelConfig& config);

/// `normalized`: with batch norm.
Result<Model> vgg16(bool normalized, const ModelConfig& config);

Result<Model> lstm(const ModelConfig& config);
Result<Model> lstm_lm(const ModelConfig& config);

Result<Model> gpt(const ModelConfig& config);

struct ResNetSize {
  std::string name;
  std::array<std::int64_t, 4> blocks;  ///< of each stage
  bool bottleneck;
};
Result<Model> resnet(const ResNetSize& size, const ModelConfig& config);

}  // namespace troupe::kernels::models
