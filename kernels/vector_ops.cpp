#include "kernels/vector_ops.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "kernels/internal/wide_loop.hpp"
#include "runtime/base/check.hpp"

namespace troupe::kernels {

TROUPE_WIDE_LOOP(add_floats, (float* dst, const float* a, const float* b, std::size_t n),
                 (dst, a, b, n)) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = a[i] + b[i];
}

void add(std::span<float> dst, std::span<const float> a, std::span<const float> b) {
  TROUPE_CHECK(dst.size() == a.size() && dst.size() == b.size(),
               fmt::format("add of {} and {} floats into {}", a.size(), b.size(), dst.size()));
  add_floats(dst.data(), a.data(), b.data(), dst.size());
}

void add_in_place(std::span<float> dst, std::span<const float> a) {
  add(dst, dst, a);
}

}  // namespace troupe::kernels
