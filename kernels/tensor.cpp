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
  const auto bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
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

Result<Tensor> Tensor::reshaped(Shape shape) const {
  if (shape.elements() != shape_.elements())
    return Error{Code::shape_mismatch, fmt::format("{} has {} elements and cannot be seen as {}",
                                                   describe(*this), elements(), to_string(shape))};
  Tensor other = *this;
  other.shape_ = shape;
  return other;
}

Result<Tensor> Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() == 0 || begin < 0 || begin > end || end > shape_[0])
    return Error{Code::invalid_argument,
                 fmt::format("rows {}..{} of {} are not there", begin, end, describe(*this))};
  const Shape row = shape_.without_first();
  Tensor other = *this;
  other.offset_ += static_cast<std::size_t>(begin * row.elements()) * size_of(dtype_);
  other.shape_ = row.with_first(end - begin);
  return other;
}

void Tensor::require(DType dtype) const {
  TROUPE_CHECK(dtype == dtype_, fmt::format("{} read as {}", describe(*this), to_string(dtype)));
  TROUPE_CHECK(device() == Device::cpu, fmt::format("{} is not on the host", describe(*this)));
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.dtype()), to_string(tensor.shape()));
}

}  // namespace troupe::kernels
