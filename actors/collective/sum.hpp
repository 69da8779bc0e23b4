#pragma once

#include <cstddef>

namespace troupe::collective {

// The loops that add gradients. Each element is computed alone, in the order that is written here,
// so the result does not depend on vector width, on where a range begins or on how it is cut.
// `out` may be one of the inputs; other overlap is not allowed.

/// out = a + b
void add2(float* out, const float* a, const float* b, std::size_t count) noexcept;
/// out = (a + b) + c
void add3_left(float* out, const float* a, const float* b, const float* c,
               std::size_t count) noexcept;
/// out = a + (b + c)
void add3_right(float* out, const float* a, const float* b, const float* c,
                std::size_t count) noexcept;
/// out = (a + b) + (c + d)
void add4(float* out, const float* a, const float* b, const float* c, const float* d,
          std::size_t count) noexcept;

}  // namespace troupe::collective
