#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/host_device.hpp"

namespace troupe::kernels::cuda {

/// y[token] = weight[ids[token]], rows of `width`.
struct EmbeddingForward {
  const std::int32_t* ids;
  const float* weight;
  float* y;
  std::size_t width;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    y[i] = weight[static_cast<std::size_t>(ids[i / width]) * width + i % width];
  }
};

/// For each token, the next one of the same id (`count` if there is none), and whether it is the
/// first one.
///
/// A token looks at all others, so that no table of the vocabulary is needed and nothing is written
/// by two: its work is count^2 comparisons of numbers that lie in the cache.
struct TokenChains {
  const std::int32_t* ids;
  std::int32_t count;
  std::int32_t* next;
  std::uint8_t* first;  ///< 1 for the first of its id
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const auto token = static_cast<std::int32_t>(i);
    std::int32_t later = token + 1;
    while (later < count && ids[later] != ids[token]) ++later;
    next[token] = later;
    std::int32_t before = token;
    while (before > 0 && ids[before - 1] != ids[token]) --before;
    first[token] = before == 0 ? 1 : 0;
  }
};

/// The gradient of the weight's row of each id that comes: the sum of its tokens' dy, in their
/// order, added to what is there.
struct EmbeddingBackward {
  const std::int32_t* ids;
  const std::int32_t* next;
  const std::uint8_t* first;
  std::int32_t count;
  const float* dy;
  float* gradient;
  std::size_t width;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t token = i / width, c = i % width;
    if (first[token] == 0) return;
    float* const to = gradient + static_cast<std::size_t>(ids[token]) * width + c;
    float sum = *to;
    for (auto at = static_cast<std::int32_t>(token); at < count; at = next[at])
      sum += dy[static_cast<std::size_t>(at) * width + c];
    *to = sum;
  }
};

/// y[n, i] = x[n, i] + weight[i], of `sample` floats.
struct PositionForward {
  const float* x;
  const float* weight;
  float* y;
  std::size_t sample;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { y[i] = x[i] + weight[i % sample]; }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_EMBEDDING_BODIES(each)                                                    \
  each(troupe::kernels::cuda::EmbeddingForward) each(troupe::kernels::cuda::TokenChains) \
      each(troupe::kernels::cuda::EmbeddingBackward) each(troupe::kernels::cuda::PositionForward)
