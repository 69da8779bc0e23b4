#include "kernels/model.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::kernels {

struct Model::Data {
  std::string name;
  Shape input;
  Shape output;
  std::vector<Layer> layers;
  std::vector<ParameterInfo> parameters;
  std::size_t flat_size = 0;
};

namespace {

constexpr std::size_t kAlignmentFloats = 16;

struct NamedShapes {
  std::string name;
  Shape weight;
  Shape bias;
  std::int64_t fan_in;
};

/// The parameters of a layer, if it has any. Errors: as Shape::checked.
Result<std::optional<NamedShapes>> parameters_of(const Layer& layer) {
  if (const auto* conv = std::get_if<Convolution>(&layer.spec)) {
    const std::int64_t dims[] = {conv->out_channels, layer.input[0], conv->kernel, conv->kernel};
    TROUPE_ASSIGN(const Shape weight, Shape::checked(dims));
    return std::optional(NamedShapes{conv->name, weight, Shape{conv->out_channels},
                                     layer.input[0] * conv->kernel * conv->kernel});
  }
  if (const auto* linear = std::get_if<Linear>(&layer.spec)) {
    const std::int64_t dims[] = {linear->out_features, layer.input[0]};
    TROUPE_ASSIGN(const Shape weight, Shape::checked(dims));
    return std::optional(
        NamedShapes{linear->name, weight, Shape{linear->out_features}, layer.input[0]});
  }
  return std::optional<NamedShapes>{};
}

std::size_t append(std::vector<ParameterInfo>& list, std::size_t& end, std::string name,
                   Shape shape, std::int64_t fan_in) {
  const auto elements = static_cast<std::size_t>(shape.elements());
  list.push_back({std::move(name), shape, end, elements, fan_in});
  end += (elements + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
  return list.size() - 1;
}

}  // namespace

Result<Model> Model::build(std::string name, Shape input, std::vector<LayerSpec> layers) {
  if (layers.empty())
    return Error{Code::invalid_argument, fmt::format("model '{}' has no layers", name)};
  auto data = std::make_shared<Data>();
  data->name = std::move(name);
  data->input = input;
  Shape shape = input;
  for (LayerSpec& spec : layers) {
    auto output = output_shape(spec, shape);
    if (!output.ok())
      return Error{output.code(),
                   fmt::format("model '{}': {}", data->name, output.error().message)};
    Layer layer{std::move(spec), shape, *output, {}, {}};
    TROUPE_ASSIGN(const auto named, parameters_of(layer));
    if (named) {
      for (const ParameterInfo& other : data->parameters)
        if (other.name == named->name + ".weight")
          return Error{Code::invalid_argument,
                       fmt::format("model '{}' has two layers named '{}'; give each its own name",
                                   data->name, named->name)};
      layer.weight = append(data->parameters, data->flat_size, named->name + ".weight",
                            named->weight, named->fan_in);
      layer.bias = append(data->parameters, data->flat_size, named->name + ".bias", named->bias,
                          named->fan_in);
    }
    shape = layer.output;
    data->layers.push_back(std::move(layer));
  }
  data->output = shape;
  return Model(std::move(data));
}

const std::string& Model::name() const noexcept {
  return data_->name;
}
const Shape& Model::input() const noexcept {
  return data_->input;
}
const Shape& Model::output() const noexcept {
  return data_->output;
}
std::span<const Layer> Model::layers() const noexcept {
  return data_->layers;
}
std::span<const ParameterInfo> Model::parameters() const noexcept {
  return data_->parameters;
}
std::size_t Model::flat_size() const noexcept {
  return data_->flat_size;
}

std::optional<std::size_t> Model::find_parameter(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < data_->parameters.size(); ++i)
    if (data_->parameters[i].name == name) return i;
  return {};
}

std::size_t Model::parameter_count() const noexcept {
  std::size_t count = 0;
  for (const ParameterInfo& parameter : data_->parameters) count += parameter.elements;
  return count;
}

bool Model::same_layout(const Model& other) const noexcept {
  if (data_ == other.data_) return true;
  return std::ranges::equal(parameters(), other.parameters(),
                            [](const ParameterInfo& a, const ParameterInfo& b) {
                              return a.name == b.name && a.shape == b.shape && a.offset == b.offset;
                            });
}

}  // namespace troupe::kernels
