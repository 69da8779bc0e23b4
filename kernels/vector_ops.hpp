#pragma once

#include <span>

namespace troupe::kernels {

// Loops over runs of floats. Each element is computed by itself with separate roundings (no fused
// multiply-add), so that any split of a run, and any machine, gives the same bits. Spans of one
// call have one length, or it aborts. Threads: any, on runs of their own.

/// dst = a + b. dst may be a or b, but not overlap them otherwise.
void add(std::span<float> dst, std::span<const float> a, std::span<const float> b);

/// dst += a.
void add_in_place(std::span<float> dst, std::span<const float> a);

}  // namespace troupe::kernels
