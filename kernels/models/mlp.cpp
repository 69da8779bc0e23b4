#include <fmt/format.h>

#include "kernels/internal/models.hpp"

namespace troupe::kernels::models {

Result<Model> mlp(const ModelConfig& config) {
  std::vector<LayerSpec> layers;
  layers.emplace_back(Flatten{});
  std::size_t number = 0;
  for (std::int64_t size : config.hidden) {
    layers.emplace_back(Linear{fmt::format("fc{}", ++number), size});
    layers.emplace_back(Relu{});
  }
  layers.emplace_back(Linear{fmt::format("fc{}", ++number), config.classes});
  return Model::build("mlp", config.input, std::move(layers));
}

}  // namespace troupe::kernels::models
