#include "kernels/model_builder.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "kernels/internal/model_data.hpp"

namespace troupe::kernels {

namespace {

constexpr std::size_t kAlignmentFloats = 16;

std::size_t aligned(std::size_t floats) {
  return (floats + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
}

}  // namespace

ModelBuilder::ModelBuilder(std::string name, Shape input, DType input_dtype)
    : data_(std::make_shared<Model::Data>()) {
  data_->name = std::move(name);
  data_->input = input;
  data_->input_dtype = input_dtype;
}
ModelBuilder::ModelBuilder(ModelBuilder&&) noexcept = default;
ModelBuilder::~ModelBuilder() = default;

const Shape& ModelBuilder::shape(Value value) const noexcept {
  if (value.index == 0 || value.index > data_->layers.size()) return data_->input;
  return data_->layers[value.index - 1].output;
}

ModelBuilder::Value ModelBuilder::add(LayerSpec spec, std::vector<Value> inputs) {
  if (!status_.ok()) return {};
  status_ = try_add(std::move(spec), inputs);
  return {data_->layers.size()};
}

Status ModelBuilder::try_add(LayerSpec spec, std::span<const Value> inputs) {
  Layer layer{std::move(spec), {}, {}, {}, {}};
  for (const Value value : inputs) {
    layer.from.push_back(value.index);
    layer.inputs.push_back(shape(value));
  }
  const auto in_model = [&](const Error& error) {
    return Error{error.code, fmt::format("model '{}': {}", data_->name, error.message)};
  };
  for (const std::size_t value : layer.from) {
    const DType given = value == 0 ? data_->input_dtype : DType::f32;
    if (given != input_dtype(layer.spec))
      return in_model(Error{Code::invalid_argument,
                            fmt::format("{} takes {}, but its input is {}", describe(layer.spec),
                                        to_string(input_dtype(layer.spec)), to_string(given))});
  }
  const auto output = output_shape(layer.spec, layer.inputs);
  if (!output.ok()) return in_model(output.error());
  layer.output = *output;
  const auto specs = parameters_of(layer.spec, layer.inputs);
  if (!specs.ok()) return in_model(specs.error());
  for (const ParameterSpec& parameter : *specs) {
    const auto index = parameter.tied_to.empty() ? add_parameter(layer.spec, parameter)
                                                 : find_tied(layer.spec, parameter);
    if (!index.ok()) return in_model(index.error());
    layer.parameters.push_back(*index);
  }
  data_->layers.push_back(std::move(layer));
  return {};
}

Result<std::size_t> ModelBuilder::add_parameter(const LayerSpec& layer,
                                                const ParameterSpec& parameter) {
  ParameterInfo info;
  info.name = fmt::format("{}.{}", name_of(layer), parameter.name);
  if (std::ranges::find(data_->parameters, info.name, &ParameterInfo::name) !=
      data_->parameters.end())
    return Error{
        Code::invalid_argument,
        fmt::format("there are two layers named '{}'; give each its own name", name_of(layer))};
  info.shape = parameter.shape;
  info.elements = static_cast<std::size_t>(parameter.shape.elements());
  info.initial = parameter.initial;
  info.kind = parameter.kind;
  info.momentum = parameter.momentum;
  data_->parameters.push_back(std::move(info));
  return data_->parameters.size() - 1;
}

Result<std::size_t> ModelBuilder::find_tied(const LayerSpec& layer,
                                            const ParameterSpec& parameter) const {
  // Only their kernels add to a gradient that is there.
  const auto owner = std::ranges::find_if(data_->layers, [&](const Layer& other) {
    return (std::holds_alternative<Linear>(other.spec) ||
            std::holds_alternative<Embedding>(other.spec)) &&
           data_->parameters[other.parameters[0]].name == parameter.tied_to;
  });
  if (owner == data_->layers.end())
    return Error{Code::invalid_argument,
                 fmt::format("{}: its {} is tied to '{}', but no linear layer or embedding before "
                             "it has a weight of that name",
                             describe(layer), parameter.name, parameter.tied_to)};
  const std::size_t index = owner->parameters[0];
  const Shape& shape = data_->parameters[index].shape;
  if (shape != parameter.shape)
    return Error{Code::shape_mismatch,
                 fmt::format("{}: its {} is {}, but '{}', which it is tied to, is {}",
                             describe(layer), parameter.name, to_string(parameter.shape),
                             parameter.tied_to, to_string(shape))};
  return index;
}

/// Gives every parameter its place, and sorts them by it.
void ModelBuilder::place_parameters() {
  auto& data = *data_;
  std::vector<std::size_t> order(data.parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto trained = [&](std::size_t i) {
    return data.parameters[i].kind == ParameterKind::trained;
  };
  std::stable_partition(order.begin(), order.end(), trained);
  std::vector<std::size_t> place(order.size());
  std::vector<ParameterInfo> sorted;
  for (const std::size_t i : order) {
    place[i] = sorted.size();
    ParameterInfo& info = sorted.emplace_back(std::move(data.parameters[i]));
    info.offset = data.flat_size;
    data.flat_size = aligned(info.offset + info.elements);
    if (info.kind == ParameterKind::trained) data.trained_size = data.flat_size;
  }
  data.parameters = std::move(sorted);
  for (Layer& layer : data.layers)
    for (std::size_t& index : layer.parameters) index = place[index];
}

Result<Model> ModelBuilder::build() {
  TROUPE_TRY(status_);
  if (data_->layers.empty())
    return Error{Code::invalid_argument, fmt::format("model '{}' has no layers", data_->name)};
  std::vector<bool> used(data_->layers.size() + 1);
  for (const Layer& layer : data_->layers)
    for (const std::size_t value : layer.from) used[value] = true;
  for (std::size_t i = 0; i + 1 < data_->layers.size(); ++i)
    if (!used[i + 1])
      return Error{
          Code::invalid_argument,
          fmt::format("model '{}': no layer uses what {} (layer {}) gives; use it or leave "
                      "it out",
                      data_->name, describe(data_->layers[i].spec), i)};
  place_parameters();
  return Model(std::exchange(data_, {}));
}

}  // namespace troupe::kernels
