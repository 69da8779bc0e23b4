#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// In which order the elements of images lie. Shapes stay [batch, channels, height, width].
enum class MemoryFormat : std::uint8_t {
  row_major,      ///< the last dimension's side by side: what all kernels take
  channels_last,  ///< the channels of a pixel side by side, pixel after pixel: PyTorch's, of rank 4
};
/// "row-major", "channels-last".
std::string_view to_string(MemoryFormat format) noexcept;

/// How many elements further the next one along each dimension is. Never negative; 0 where one
/// element stands for many. A value type without allocation.
class Strides {
public:
  /// Of a scalar.
  Strides() = default;
  /// For strides that the program knows: aborts where `checked` would fail.
  Strides(std::initializer_list<std::int64_t> strides);

  /// For strides from a file, a message or another library. Errors: `invalid_argument` for more
  /// than Shape::kMaxRank of them or a negative one.
  static Result<Strides> checked(std::span<const std::int64_t> strides);
  /// Without gaps, the last dimension's elements side by side.
  static Strides row_major(const Shape& shape);
  /// Of a shape in that format. Errors: `shape_mismatch` for channels last of another rank than 4.
  static Result<Strides> of(const Shape& shape, MemoryFormat format);

  std::size_t rank() const noexcept { return rank_; }
  std::int64_t operator[](std::size_t axis) const;
  std::span<const std::int64_t> values() const noexcept { return {values_.data(), rank_}; }

  /// Whether elements of `shape` lie as with `other`: strides of dimensions of size 1 do not
  /// matter, and of a shape without elements none does.
  bool same_for(const Shape& shape, const Strides& other) const noexcept;
  /// Elements from the first to after the last of `shape`, 0 if it has none. Errors:
  /// `invalid_argument` for another rank than the shape's, or more than 2^48.
  Result<std::size_t> extent(const Shape& shape) const;

  bool operator==(const Strides&) const = default;

private:
  std::array<std::int64_t, Shape::kMaxRank> values_{};
  std::size_t rank_ = 0;
};

/// "[25, 25, 5, 1]".
std::string to_string(const Strides& strides);

}  // namespace troupe::kernels
