#include "kernels/shape.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::kernels {

namespace {
constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;
}

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  *this = checked({dims.begin(), dims.size()}).value();
}

Result<Shape> Shape::checked(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank)
    return Error{
        Code::invalid_argument,
        fmt::format("a shape of {} dimensions; at most {} are supported", dims.size(), kMaxRank)};
  std::int64_t product = 1;
  for (std::int64_t size : dims) {
    // Zero sizes count as one here, so that an empty tensor cannot hide an absurd size.
    const std::int64_t factor = std::max<std::int64_t>(size, 1);
    if (size < 0 || factor > kMaxElements / product)
      return Error{Code::invalid_argument,
                   fmt::format("shape [{}] is negative or has more than 2^48 elements",
                               fmt::join(dims, ", "))};
    product *= factor;
  }
  Shape shape;
  shape.rank_ = dims.size();
  std::copy(dims.begin(), dims.end(), shape.dims_.begin());
  return shape;
}

std::int64_t Shape::operator[](std::size_t axis) const {
  TROUPE_CHECK(axis < rank_, fmt::format("axis {} of shape {}", axis, to_string(*this)));
  return dims_[axis];
}

std::int64_t Shape::elements() const noexcept {
  std::int64_t product = 1;
  for (std::int64_t size : dims()) product *= size;
  return product;
}

Shape Shape::with_first(std::int64_t size) const {
  TROUPE_CHECK(rank_ < kMaxRank, "with_first of a shape of the highest rank");
  std::array<std::int64_t, kMaxRank> dims{};
  dims[0] = size;
  std::copy_n(dims_.begin(), rank_, dims.begin() + 1);
  return checked({dims.data(), rank_ + 1}).value();
}

Shape Shape::without_first() const {
  TROUPE_CHECK(rank_ > 0, "without_first of a scalar's shape");
  return checked(dims().subspan(1)).value();
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ", "));
}

}  // namespace troupe::kernels
