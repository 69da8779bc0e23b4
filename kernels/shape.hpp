#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Sizes of a tensor's dimensions, outermost first. A value type without allocation.
class Shape {
public:
  static constexpr std::size_t kMaxRank = 6;

  /// Of a scalar: no dimensions, one element.
  Shape() = default;
  /// For sizes that the program knows: aborts where `checked` would fail.
  Shape(std::initializer_list<std::int64_t> dims);

  /// For sizes from a file or a message. Errors: `invalid_argument` for more than kMaxRank
  /// dimensions, a negative size, or a product above 2^48.
  static Result<Shape> checked(std::span<const std::int64_t> dims);

  std::size_t rank() const noexcept { return rank_; }
  /// Size of dimension `axis`, which must be there.
  std::int64_t operator[](std::size_t axis) const;
  std::int64_t elements() const noexcept;
  std::span<const std::int64_t> dims() const noexcept { return {dims_.data(), rank_}; }

  /// The shape with a dimension put before the others, and the shape without its first one.
  Shape with_first(std::int64_t size) const;
  Shape without_first() const;

  bool operator==(const Shape&) const = default;

private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

/// "[6, 1, 5, 5]".
std::string to_string(const Shape& shape);

}  // namespace troupe::kernels
