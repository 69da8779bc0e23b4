#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/layer.hpp"
#include "kernels/model.hpp"

namespace troupe::kernels {

struct Model::Data {
  std::string name;
  Shape input;
  DType input_dtype = DType::f32;
  std::vector<Layer> layers;
  std::vector<ParameterInfo> parameters;
  std::size_t flat_size = 0;
  std::size_t trained_size = 0;
};

}  // namespace troupe::kernels
