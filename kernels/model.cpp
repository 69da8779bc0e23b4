#include "kernels/model.hpp"

#include <algorithm>
#include <utility>

#include "kernels/internal/model_data.hpp"
#include "kernels/model_builder.hpp"

namespace troupe::kernels {

Result<Model> Model::build(std::string name, Shape input, std::vector<LayerSpec> layers) {
  const DType dtype = layers.empty() ? DType::f32 : kernels::input_dtype(layers[0]);
  ModelBuilder builder(std::move(name), input, dtype);
  auto value = builder.input();
  for (LayerSpec& layer : layers) value = builder.add(std::move(layer), value);
  return builder.build();
}

const std::string& Model::name() const noexcept {
  return data_->name;
}
const Shape& Model::input() const noexcept {
  return data_->input;
}
DType Model::input_dtype() const noexcept {
  return data_->input_dtype;
}
std::int64_t Model::vocabulary() const noexcept {
  std::int64_t least = 0;
  for (const Layer& layer : data_->layers)
    if (const auto* embedding = std::get_if<Embedding>(&layer.spec))
      least = least == 0 ? embedding->vocabulary : std::min(least, embedding->vocabulary);
  return least;
}
const Shape& Model::output() const noexcept {
  return data_->layers.back().output;
}
std::int64_t Model::labels_per_sample() const noexcept {
  return output().rank() == 2 ? output()[0] : 1;
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
std::size_t Model::trained_size() const noexcept {
  return data_->trained_size;
}

std::optional<std::size_t> Model::find_parameter(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < data_->parameters.size(); ++i)
    if (data_->parameters[i].name == name) return i;
  return {};
}

std::size_t Model::parameter_count() const noexcept {
  std::size_t count = 0;
  for (const ParameterInfo& parameter : data_->parameters)
    if (parameter.kind == ParameterKind::trained) count += parameter.elements;
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
