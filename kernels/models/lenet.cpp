#include <fmt/format.h>

#include "kernels/internal/models.hpp"

namespace troupe::kernels::models {

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

}  // namespace troupe::kernels::models
