#include <cstring>

#include <fmt/format.h>

#include "kernels/short_floats.hpp"
#include "kernels/tensor.hpp"

namespace troupe::kernels {

namespace {

/// Copies element by element, the last dimension innermost.
template <class T>
void copy_strided(const Shape& shape, std::size_t axis, const T* from, const Strides& from_strides,
                  T* to, const Strides& to_strides) {
  if (axis == shape.rank()) {
    *to = *from;
    return;
  }
  const std::int64_t count = shape[axis], step = from_strides[axis], to_step = to_strides[axis];
  if (axis + 1 == shape.rank()) {
    for (std::int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * step];
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    copy_strided(shape, axis + 1, from + i * step, from_strides, to + i * to_step, to_strides);
}

template <class T>
void copy_elements(const Tensor& from, Tensor& to) {
  const std::byte* const source = from.storage().bytes().data() + from.offset();
  // Of the copy's storage, which is nobody else's.
  auto* const target = const_cast<std::byte*>(to.storage().bytes().data()) + to.offset();
  copy_strided(from.shape(), 0, reinterpret_cast<const T*>(source), from.strides(),
               reinterpret_cast<T*>(target), to.strides());
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

/// Calls `convert(from, to)` for elements of the types' bits.
template <class From, class To, class Convert>
void convert_run(std::span<const std::byte> from, std::span<std::byte> to, Convert convert) {
  const auto* const source = reinterpret_cast<const From*>(from.data());
  auto* const target = reinterpret_cast<To*>(to.data());
  for (std::size_t i = 0; i < to.size() / sizeof(To); ++i) target[i] = convert(source[i]);
}

/// f32 to or from a type of 16 bits.
void convert_run(std::span<const std::byte> from, DType from_type, std::span<std::byte> to,
                 DType to_type) {
  if (from_type == DType::bf16)
    convert_run<std::uint16_t, float>(from, to, bf16_value);
  else if (from_type == DType::f16)
    convert_run<std::uint16_t, float>(from, to, f16_value);
  else if (to_type == DType::bf16)
    convert_run<float, std::uint16_t>(from, to, bf16_bits);
  else
    convert_run<float, std::uint16_t>(from, to, f16_bits);
}

Status check_host(const Tensor& tensor) {
  if (tensor.device() == Device::cpu) return {};
  return {Code::not_supported, fmt::format("{} is in the memory of a device of kind '{}'; bring it "
                                           "to the host first",
                                           describe(tensor), to_string(tensor.device()))};
}

}  // namespace

Result<Tensor> Tensor::contiguous(MemoryFormat format) const {
  TROUPE_ASSIGN(const Strides strides, Strides::of(shape_, format));
  if (strides_.same_for(shape_, strides)) return *this;
  TROUPE_TRY(check_host(*this));
  TROUPE_ASSIGN(Tensor copy, allocate(dtype_, shape_));
  copy.strides_ = strides;
  switch (size_of(dtype_)) {
    case sizeof(std::uint32_t):
      copy_elements<std::uint32_t>(*this, copy);
      break;
    case sizeof(std::uint16_t):
      copy_elements<std::uint16_t>(*this, copy);
      break;
    default:
      copy_elements<std::uint8_t>(*this, copy);
  }
  return copy;
}

Result<Tensor> Tensor::to(DType dtype) const {
  if (dtype == dtype_) return contiguous();
  if (!is_float(dtype_) || !is_float(dtype))
    return Error{Code::not_supported, fmt::format("{} becomes no {}: only f32, bf16 and f16 become "
                                                  "each other",
                                                  describe(*this), to_string(dtype))};
  TROUPE_TRY(check_host(*this));
  // Between the two of 16 bits by way of f32, which holds both exactly.
  if (dtype_ != DType::f32 && dtype != DType::f32) {
    TROUPE_ASSIGN(const Tensor wide, to(DType::f32));
    return wide.to(dtype);
  }
  TROUPE_ASSIGN(const Tensor from, contiguous());
  TROUPE_ASSIGN(Tensor converted, allocate(dtype, shape_));
  convert_run(from.bytes(), dtype_, converted.bytes(), dtype);
  return converted;
}

}  // namespace troupe::kernels
