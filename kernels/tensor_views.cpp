#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/tensor.hpp"

namespace troupe::kernels {

namespace {

/// Sizes and strides while a view is made.
struct Layout {
  explicit Layout(const Tensor& tensor) : rank(tensor.shape().rank()) {
    std::ranges::copy(tensor.shape().dims(), dims.begin());
    std::ranges::copy(tensor.strides().values(), strides.begin());
  }
  std::array<std::int64_t, Shape::kMaxRank> dims{}, strides{};
  std::size_t rank;
};

}  // namespace

Error Tensor::no_axis(std::size_t axis) const {
  return {Code::invalid_argument, fmt::format("{} has no dimension {}", describe(*this), axis)};
}

/// The caller has seen to it that all elements are among those that were there.
Tensor Tensor::with_layout(std::span<const std::int64_t> dims,
                           std::span<const std::int64_t> strides, std::int64_t first) const {
  Tensor other = *this;
  other.shape_ = Shape::checked(dims).value();
  other.strides_ = Strides::checked(strides).value();
  // Of no elements the first is nowhere.
  if (other.elements() != 0) other.offset_ += static_cast<std::size_t>(first) * size_of(dtype_);
  return other;
}

Result<Tensor> Tensor::reshaped(Shape shape) const {
  if (shape.elements() != shape_.elements())
    return Error{Code::shape_mismatch, fmt::format("{} has {} elements and cannot be seen as {}",
                                                   describe(*this), elements(), to_string(shape))};
  if (!is_contiguous())
    return Error{Code::invalid_argument,
                 fmt::format("{} cannot be seen as {}; take its contiguous() first",
                             describe(*this), to_string(shape))};
  Tensor other = *this;
  other.shape_ = shape;
  other.strides_ = Strides::row_major(shape);
  return other;
}

Result<Tensor> Tensor::slice(std::size_t axis, std::int64_t begin, std::int64_t end,
                             std::int64_t step) const {
  if (axis >= shape_.rank()) return no_axis(axis);
  if (begin < 0 || begin > end || end > shape_[axis] || step < 1)
    return Error{Code::invalid_argument,
                 fmt::format("{}..{} by {} of dimension {} of {} are not there", begin, end, step,
                             axis, describe(*this))};
  Layout made(*this);
  const std::int64_t count = end == begin ? 0 : (end - begin - 1) / step + 1;
  made.dims[axis] = count;
  // The stride of at most one element is never used, and may be too large to have.
  if (count > 1) made.strides[axis] *= step;
  return with_layout({made.dims.data(), made.rank}, {made.strides.data(), made.rank},
                     begin * strides_[axis]);
}

Result<Tensor> Tensor::select(std::size_t axis, std::int64_t index) const {
  if (axis >= shape_.rank()) return no_axis(axis);
  if (index < 0 || index >= shape_[axis])
    return Error{Code::invalid_argument, fmt::format("{} of dimension {} of {} is not there", index,
                                                     axis, describe(*this))};
  Layout made(*this);
  const auto at = static_cast<std::ptrdiff_t>(axis);
  std::copy(made.dims.begin() + at + 1, made.dims.end(), made.dims.begin() + at);
  std::copy(made.strides.begin() + at + 1, made.strides.end(), made.strides.begin() + at);
  --made.rank;
  return with_layout({made.dims.data(), made.rank}, {made.strides.data(), made.rank},
                     index * strides_[axis]);
}

Result<Tensor> Tensor::transposed(std::size_t a, std::size_t b) const {
  if (std::max(a, b) >= shape_.rank()) return no_axis(std::max(a, b));
  Layout made(*this);
  std::swap(made.dims[a], made.dims[b]);
  std::swap(made.strides[a], made.strides[b]);
  return with_layout({made.dims.data(), made.rank}, {made.strides.data(), made.rank}, 0);
}

Result<Tensor> Tensor::permuted(std::span<const std::size_t> order) const {
  std::array<bool, Shape::kMaxRank> taken{};
  bool fits = order.size() == shape_.rank();
  for (std::size_t i = 0; fits && i < order.size(); ++i) {
    fits = order[i] < shape_.rank() && !taken[order[i]];
    if (fits) taken[order[i]] = true;
  }
  if (!fits)
    return Error{Code::invalid_argument,
                 fmt::format("[{}] is no order of the {} dimensions of {}", fmt::join(order, ", "),
                             shape_.rank(), describe(*this))};
  Layout made(*this);
  for (std::size_t i = 0; i < order.size(); ++i) {
    made.dims[i] = shape_[order[i]];
    made.strides[i] = strides_[order[i]];
  }
  return with_layout({made.dims.data(), made.rank}, {made.strides.data(), made.rank}, 0);
}

Result<Tensor> Tensor::expanded(Shape shape) const {
  const auto wrong = [&] {
    return Error{Code::shape_mismatch,
                 fmt::format("{} cannot be repeated to {}", describe(*this), to_string(shape))};
  };
  if (shape.rank() < shape_.rank()) return wrong();
  const std::size_t before = shape.rank() - shape_.rank();
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  for (std::size_t axis = 0; axis < shape_.rank(); ++axis) {
    if (shape[before + axis] == shape_[axis])
      strides[before + axis] = strides_[axis];
    else if (shape_[axis] != 1)
      return wrong();
  }
  return with_layout(shape.dims(), {strides.data(), shape.rank()}, 0);
}

}  // namespace troupe::kernels
