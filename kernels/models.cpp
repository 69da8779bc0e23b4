#include <fmt/format.h>

#include "kernels/model.hpp"

namespace troupe::kernels {

namespace {

Result<Model> lenet5(const ModelConfig& config) {
  if (config.input != Shape{1, 28, 28})
    return Error{Code::shape_mismatch, fmt::format("model 'lenet5' needs input [1, 28, 28], not {}",
                                                   to_string(config.input))};
  return Model::build(
      "lenet5", config.input,
      {Convolution{.name = "conv1", .out_channels = 6, .kernel = 5, .padding = 2}, Relu{},
       Pooling{}, Convolution{.name = "conv2", .out_channels = 16, .kernel = 5}, Relu{}, Pooling{},
       Flatten{}, Linear{"fc1", 120}, Relu{}, Linear{"fc2", 84}, Relu{},
       Linear{"fc3", config.classes}});
}

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

}  // namespace

Result<Model> make_model(std::string_view name, const ModelConfig& config) {
  if (name == "lenet5") return lenet5(config);
  if (name == "mlp") return mlp(config);
  return Error{Code::not_found,
               fmt::format("there is no model '{}'; use one of: lenet5, mlp", name)};
}

}  // namespace troupe::kernels
