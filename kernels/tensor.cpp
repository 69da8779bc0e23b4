#include "kernels/tensor.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::kernels {

Result<Tensor> Tensor::allocate(DType dtype, Shape shape) {
  const auto bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  TROUPE_ASSIGN(Buffer storage, Buffer::allocate(bytes));
  return view(std::move(storage), 0, dtype, shape);
}

Result<Tensor> Tensor::allocate(DType dtype, Shape shape, const ComputeDevice& device) {
  const auto bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  TROUPE_ASSIGN(Buffer storage, device.allocate(bytes));
  return view(std::move(storage), 0, dtype, shape);
}

Result<Tensor> Tensor::zeros(DType dtype, Shape shape) {
  TROUPE_ASSIGN(Tensor tensor, allocate(dtype, shape));
  if (auto bytes = tensor.bytes(); !bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
  return tensor;
}

Result<Tensor> Tensor::view(Buffer storage, std::size_t offset, DType dtype, Shape shape) {
  return view(std::move(storage), offset, dtype, shape, Strides::row_major(shape));
}

Result<Tensor> Tensor::view(Buffer storage, std::size_t offset, DType dtype, Shape shape,
                            const Strides& strides) {
  TROUPE_ASSIGN(const std::size_t extent, strides.extent(shape));
  const std::size_t bytes = extent * size_of(dtype);
  if (offset > storage.size() || storage.size() - offset < bytes)
    return Error{Code::shape_mismatch,
                 fmt::format("{} {} needs {} bytes from offset {}, but its buffer has {}",
                             to_string(dtype), to_string(shape), bytes, offset, storage.size())};
  const auto address = reinterpret_cast<std::uintptr_t>(storage.data()) + offset;
  if (bytes != 0 && address % size_of(dtype) != 0)
    return Error{Code::invalid_argument,
                 fmt::format("{} {} at offset {} is not aligned to {} bytes; copy it first",
                             to_string(dtype), to_string(shape), offset, size_of(dtype))};
  Tensor tensor;
  tensor.storage_ = std::move(storage);
  tensor.offset_ = offset;
  tensor.shape_ = shape;
  // Nobody looks at those of no elements, so they have no bound.
  tensor.strides_ = extent == 0 ? Strides::row_major(shape) : strides;
  tensor.dtype_ = dtype;
  return tensor;
}

Device Tensor::device() const noexcept {
  switch (storage_.kind()) {
    case MemoryKind::cuda:
      return Device::cuda;
    case MemoryKind::simulated:
      return Device::simulated;
    default:
      return Device::cpu;
  }
}

bool Tensor::is_contiguous(MemoryFormat format) const noexcept {
  const auto lying = Strides::of(shape_, format);
  return lying.ok() && strides_.same_for(shape_, *lying);
}

void Tensor::require(DType dtype) const {
  TROUPE_CHECK(dtype == dtype_, fmt::format("{} read as {}", describe(*this), to_string(dtype)));
  TROUPE_CHECK(device() == Device::cpu, fmt::format("{} is not on the host", describe(*this)));
}

void Tensor::require_contiguous() const {
  TROUPE_CHECK(is_contiguous(),
               fmt::format("{} is not one run of bytes; take its contiguous()", describe(*this)));
}

std::string describe(const Tensor& tensor) {
  std::string text = fmt::format("{} {}", to_string(tensor.dtype()), to_string(tensor.shape()));
  if (!tensor.is_contiguous()) text += fmt::format(" of strides {}", to_string(tensor.strides()));
  return text;
}

}  // namespace troupe::kernels
