#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/compute_device.hpp"
#include "kernels/dtype.hpp"
#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

/// A dense row-major array in a Buffer: what data, weights and messages are made of.
///
/// Ownership: shares its storage; copies and views see the same bytes, and the last one frees them.
/// Threads:   as Buffer: handles on any thread, the bytes as safe as the program makes them.
/// Failure:   what depends on data returns a Result; asking for the wrong C++ type aborts.
class Tensor {
public:
  /// No elements: f32 of shape [0].
  Tensor() = default;

  /// Uninitialised, on the host or on another device. Errors: `resource_exhausted`.
  static Result<Tensor> allocate(DType dtype, Shape shape);
  static Result<Tensor> allocate(DType dtype, Shape shape, const ComputeDevice& device);
  /// On the host, all bytes zero. Errors as `allocate`.
  static Result<Tensor> zeros(DType dtype, Shape shape);

  /// A view of `storage` from `offset` bytes on. Errors: `shape_mismatch` if the storage is too
  /// short, `invalid_argument` if the offset does not fit the element's alignment.
  static Result<Tensor> view(Buffer storage, std::size_t offset, DType dtype, Shape shape);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  Device device() const noexcept;
  std::size_t elements() const noexcept { return static_cast<std::size_t>(shape_.elements()); }
  std::size_t size_in_bytes() const noexcept { return elements() * size_of(dtype_); }

  /// The buffer behind it and where in it the first element is.
  const Buffer& storage() const noexcept { return storage_; }
  std::size_t offset() const noexcept { return offset_; }

  std::span<std::byte> bytes() noexcept {
    return storage_.bytes().subspan(offset_, size_in_bytes());
  }
  std::span<const std::byte> bytes() const noexcept {
    return storage_.bytes().subspan(offset_, size_in_bytes());
  }

  /// The elements; T must be the dtype's C++ type and the device the host.
  template <class T>
  std::span<T> data() {
    require(kDTypeOf<T>);
    return {reinterpret_cast<T*>(bytes().data()), elements()};
  }
  template <class T>
  std::span<const T> data() const {
    require(kDTypeOf<T>);
    return {reinterpret_cast<const T*>(bytes().data()), elements()};
  }

  /// The same elements in another shape. Errors: `shape_mismatch`.
  Result<Tensor> reshaped(Shape shape) const;
  /// Rows [begin, end) of the first dimension. Errors: `invalid_argument`.
  Result<Tensor> rows(std::int64_t begin, std::int64_t end) const;

private:
  void require(DType dtype) const;

  Buffer storage_;
  std::size_t offset_ = 0;
  Shape shape_{0};
  DType dtype_ = DType::f32;
};

/// "f32 [6, 1, 5, 5]", for messages.
std::string describe(const Tensor& tensor);

}  // namespace troupe::kernels
