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

ModelBuilder::ModelBuilder(std::string name, Shape input) : data_(std::make_shared<Model::Data>()) {
  data_->name = std::move(name);
  data_->input = input;
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
  const auto output = output_shape(layer.spec, layer.inputs);
  if (!output.ok()) return in_model(output.error());
  layer.output = *output;
  const auto specs = parameters_of(layer.spec, layer.inputs);
  if (!specs.ok()) return in_model(specs.error());
  for (const ParameterSpec& parameter : *specs) {
    ParameterInfo info;
    info.name = fmt::format("{}.{}", name_of(layer.spec), parameter.name);
    if (std::ranges::find(data_->parameters, info.name, &ParameterInfo::name) !=
        data_->parameters.end())
      return Error{Code::invalid_argument,
                   fmt::format("model '{}' has two layers named '{}'; give each its own name",
                               data_->name, name_of(layer.spec))};
    info.shape = parameter.shape;
    info.elements = static_cast<std::size_t>(parameter.shape.elements());
    info.initial = parameter.initial;
    info.kind = parameter.kind;
    info.momentum = parameter.momentum;
    layer.parameters.push_back(data_->parameters.size());
    data_->parameters.push_back(std::move(info));
  }
  data_->layers.push_back(std::move(layer));
  return {};
}

/// Gives every parameter its place, and sorts them by it.
void ModelBuilder::place_parameters() {
  auto& data = *data_;
  std::vector<std::size_t> order(data.parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto trained = [&](std::size_t i) {
    return data.parameters[i].kind == ParameterKind::trained;
  };
  std::ranges::stable_partition(order, trained);
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
