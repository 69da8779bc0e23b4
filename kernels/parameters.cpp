#include "kernels/parameters.hpp"

#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "kernels/philox.hpp"

namespace troupe::kernels {

namespace {
float draw(const Initial& initial, Philox& random) {
  switch (initial.kind) {
    case Initial::Kind::uniform:
      return random.uniform(-initial.value, initial.value);
    case Initial::Kind::normal:
      return initial.value * random.normal();
    case Initial::Kind::constant:
      break;
  }
  return initial.value;
}
}  // namespace

Result<Parameters> Parameters::zeros(const Model& model) {
  TROUPE_ASSIGN(Buffer buffer, Buffer::allocate(model.flat_size() * sizeof(float)));
  if (!buffer.empty()) std::memset(buffer.data(), 0, buffer.size());
  return Parameters(model, std::move(buffer));
}

Result<Parameters> Parameters::initialized(const Model& model, std::uint64_t seed) {
  constexpr std::uint64_t kInitialisationStream = 0x696e69745f776569;  // "init_wei"
  TROUPE_ASSIGN(Parameters result, zeros(model));
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const Initial initial = model.parameters()[i].initial;
    Philox random(seed, {kInitialisationStream, i});
    for (float& value : result.values(i)) value = draw(initial, random);
  }
  return result;
}

Result<Parameters> Parameters::in(const Model& model, Buffer buffer) {
  if (buffer.size() != model.flat_size() * sizeof(float))
    return Error{Code::shape_mismatch,
                 fmt::format("parameters of model '{}' take {} bytes, but the buffer has {}",
                             model.name(), model.flat_size() * sizeof(float), buffer.size())};
  if (reinterpret_cast<std::uintptr_t>(buffer.data()) % Buffer::kAlignment != 0)
    return Error{Code::invalid_argument,
                 fmt::format("the buffer for parameters of model '{}' is not aligned to {} bytes",
                             model.name(), Buffer::kAlignment)};
  return Parameters(model, std::move(buffer));
}

Result<Parameters> Parameters::clone() const {
  TROUPE_ASSIGN(Buffer buffer, Buffer::copy_of(buffer_.bytes()));
  return Parameters(model_, std::move(buffer));
}

std::span<float> Parameters::values() noexcept {
  return {reinterpret_cast<float*>(buffer_.data()), model_.flat_size()};
}

std::span<const float> Parameters::values() const noexcept {
  return {reinterpret_cast<const float*>(buffer_.data()), model_.flat_size()};
}

std::span<float> Parameters::values(std::size_t index) noexcept {
  const ParameterInfo& info = model_.parameters()[index];
  return values().subspan(info.offset, info.elements);
}

std::span<const float> Parameters::values(std::size_t index) const noexcept {
  const ParameterInfo& info = model_.parameters()[index];
  return values().subspan(info.offset, info.elements);
}

Tensor Parameters::tensor(std::size_t index) const {
  const ParameterInfo& info = model_.parameters()[index];
  return Tensor::view(buffer_, info.offset * sizeof(float), DType::f32, info.shape).value();
}

}  // namespace troupe::kernels
