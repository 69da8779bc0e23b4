#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/compute_device.hpp"
#include "kernels/dtype.hpp"
#include "kernels/shape.hpp"
#include "kernels/strides.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

/// An array in a Buffer: what data, weights and messages are made of. Its elements lie as its
/// strides say; what is allocated is row-major without gaps, and only that can be read as one run.
///
/// Ownership: shares its storage; copies and views see the same bytes, and the last one frees them.
/// Threads:   as Buffer: handles on any thread, the bytes as safe as the program makes them.
/// Failure:   what depends on data returns a Result; asking for the wrong C++ type, or for one run
///            of what is none, aborts.
class Tensor {
public:
  /// No elements: f32 of shape [0].
  Tensor() = default;

  /// Uninitialised, on the host or on another device. Errors: `resource_exhausted`.
  static Result<Tensor> allocate(DType dtype, Shape shape);
  static Result<Tensor> allocate(DType dtype, Shape shape, const ComputeDevice& device);
  /// On the host, all bytes zero. Errors as `allocate`.
  static Result<Tensor> zeros(DType dtype, Shape shape);

  /// A view of `storage` from `offset` bytes on, row-major without strides. Errors:
  /// `shape_mismatch` if the storage is too short, `invalid_argument` if the offset does not fit
  /// the element's alignment or the strides not the shape (Strides::extent).
  static Result<Tensor> view(Buffer storage, std::size_t offset, DType dtype, Shape shape);
  static Result<Tensor> view(Buffer storage, std::size_t offset, DType dtype, Shape shape,
                             const Strides& strides);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  const Strides& strides() const noexcept { return strides_; }
  Device device() const noexcept;
  std::size_t elements() const noexcept { return static_cast<std::size_t>(shape_.elements()); }
  /// Of its elements; a strided view may reach over more, and an expanded one over fewer.
  std::size_t size_in_bytes() const noexcept { return elements() * size_of(dtype_); }
  /// Whether the elements lie side by side in that order.
  bool is_contiguous(MemoryFormat format = MemoryFormat::row_major) const noexcept;

  /// The buffer behind it and where in it the first element is.
  const Buffer& storage() const noexcept { return storage_; }
  std::size_t offset() const noexcept { return offset_; }

  /// Its bytes as one run; it must be contiguous, see contiguous().
  std::span<std::byte> bytes() {
    require_contiguous();
    return storage_.bytes().subspan(offset_, size_in_bytes());
  }
  std::span<const std::byte> bytes() const {
    require_contiguous();
    return storage_.bytes().subspan(offset_, size_in_bytes());
  }

  /// The elements; likewise, and T must be the dtype's C++ type and the device the host.
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

  // Views: the same bytes seen otherwise. Errors: `invalid_argument` for a dimension, an index or a
  // range that is not there.

  /// The same elements in another shape. Errors: `shape_mismatch` for another number of them,
  /// `invalid_argument` unless it is contiguous.
  Result<Tensor> reshaped(Shape shape) const;
  /// Rows [begin, end) of the first dimension.
  Result<Tensor> rows(std::int64_t begin, std::int64_t end) const { return slice(0, begin, end); }
  /// Every `step`-th of [begin, end) of dimension `axis`.
  Result<Tensor> slice(std::size_t axis, std::int64_t begin, std::int64_t end,
                       std::int64_t step = 1) const;
  /// Number `index` of dimension `axis`, which goes.
  Result<Tensor> select(std::size_t axis, std::int64_t index) const;
  Result<Tensor> transposed(std::size_t a, std::size_t b) const;
  /// Dimension i is what dimension order[i] was; each is there once.
  Result<Tensor> permuted(std::span<const std::size_t> order) const;
  /// Dimensions of size 1 repeated up to those of `shape`, which may have more before them. Its
  /// elements are not to be written. Errors: `shape_mismatch` where another size differs.
  Result<Tensor> expanded(Shape shape) const;

  // Copies, in memory of their own on the host; itself where nothing changes. Errors:
  // `not_supported` for another device's memory, `resource_exhausted`.

  Result<Tensor> contiguous(MemoryFormat format = MemoryFormat::row_major) const;
  /// Between f32, bf16 and f16, contiguous: to the nearest, of two equally near ones the even; NaN
  /// stays one, and what is too large for f16 becomes infinite. Errors: `not_supported` for others.
  Result<Tensor> to(DType dtype) const;

private:
  void require(DType dtype) const;
  void require_contiguous() const;
  Error no_axis(std::size_t axis) const;
  Tensor with_layout(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                     std::int64_t first) const;

  Buffer storage_;
  std::size_t offset_ = 0;
  Shape shape_{0};
  Strides strides_{1};
  DType dtype_ = DType::f32;
};

/// "f32 [6, 1, 5, 5]", for messages; with its strides unless it is contiguous.
std::string describe(const Tensor& tensor);

}  // namespace troupe::kernels
