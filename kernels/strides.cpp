#include "kernels/strides.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::kernels {

std::string_view to_string(MemoryFormat format) noexcept {
  return format == MemoryFormat::row_major ? "row-major" : "channels-last";
}

Strides::Strides(std::initializer_list<std::int64_t> strides) {
  *this = checked({strides.begin(), strides.size()}).value();
}

Result<Strides> Strides::checked(std::span<const std::int64_t> strides) {
  if (strides.size() > Shape::kMaxRank ||
      std::ranges::any_of(strides, [](auto x) { return x < 0; }))
    return Error{Code::invalid_argument,
                 fmt::format("strides [{}] are more than {} or have one below 0",
                             fmt::join(strides, ", "), Shape::kMaxRank)};
  Strides made;
  made.rank_ = strides.size();
  std::ranges::copy(strides, made.values_.begin());
  return made;
}

Strides Strides::row_major(const Shape& shape) {
  Strides made;
  made.rank_ = shape.rank();
  std::int64_t stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    made.values_[axis] = stride;
    // As if there were one where there is none: 0 is for what stands for many.
    stride *= std::max<std::int64_t>(shape[axis], 1);
  }
  return made;
}

Result<Strides> Strides::of(const Shape& shape, MemoryFormat format) {
  if (format == MemoryFormat::row_major) return row_major(shape);
  if (shape.rank() != 4)
    return Error{Code::shape_mismatch,
                 fmt::format("{} is not [batch, channels, height, width] and has no channels to be "
                             "last",
                             to_string(shape))};
  const Strides lying = row_major({shape[0], shape[2], shape[3], shape[1]});
  return Strides{lying[0], lying[3], lying[1], lying[2]};
}

std::int64_t Strides::operator[](std::size_t axis) const {
  TROUPE_CHECK(axis < rank_, fmt::format("axis {} of strides {}", axis, to_string(*this)));
  return values_[axis];
}

bool Strides::same_for(const Shape& shape, const Strides& other) const noexcept {
  if (rank_ != shape.rank() || other.rank_ != rank_) return false;
  if (shape.elements() == 0) return true;
  for (std::size_t axis = 0; axis < rank_; ++axis)
    if (shape.dims()[axis] != 1 && values_[axis] != other.values_[axis]) return false;
  return true;
}

Result<std::size_t> Strides::extent(const Shape& shape) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  if (rank_ != shape.rank())
    return Error{Code::invalid_argument, fmt::format("strides {} are not those of shape {}",
                                                     to_string(*this), to_string(shape))};
  if (shape.elements() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < rank_; ++axis) {
    const std::int64_t steps = shape[axis] - 1;
    if (steps != 0 && values_[axis] > (kMost - 1 - last) / steps)
      return Error{Code::invalid_argument,
                   fmt::format("strides {} spread shape {} over more than 2^48 elements",
                               to_string(*this), to_string(shape))};
    last += steps * values_[axis];
  }
  return static_cast<std::size_t>(last) + 1;
}

std::string to_string(const Strides& strides) {
  return fmt::format("[{}]", fmt::join(strides.values(), ", "));
}

}  // namespace troupe::kernels
