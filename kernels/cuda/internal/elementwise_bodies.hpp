#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/host_device.hpp"
#include "kernels/internal/activation_functions.hpp"
#include "kernels/internal/dropout_key.hpp"
#include "kernels/internal/philox_rounds.hpp"
#include "kernels/pass_key.hpp"

namespace troupe::kernels::cuda {

/// y = max(x, 0). The comparison is false for NaN, so that it goes through.
struct ReluForward {
  const float* x;
  float* y;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { y[i] = x[i] <= 0.0f ? 0.0f : x[i]; }
};

/// dx = dy where y > 0, else 0; a NaN of y lets it through.
struct ReluBackward {
  const float* y;
  const float* dy;
  float* dx;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { dx[i] = y[i] <= 0.0f ? 0.0f : dy[i]; }
};

/// y = a + b: the sum of two inputs, and of two nodes' gradients in a reduction's tree.
struct Sum {
  const float* a;
  const float* b;
  float* y;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { y[i] = a[i] + b[i]; }
};

struct ReluOfSum {
  const float* a;
  const float* b;
  float* y;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const float sum = a[i] + b[i];
    y[i] = sum <= 0.0f ? 0.0f : sum;
  }
};

/// y = f(x), of kernels/internal/activation_functions.hpp.
template <class Function>
struct ActivationForward {
  const float* x;
  float* y;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { y[i] = Function::of(x[i]); }
};

/// dx = dy f', which is taken of x or y.
template <class Function>
struct ActivationBackward {
  const float* at;
  const float* dy;
  float* dx;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    dx[i] = dy[i] * Function::slope(at[i]);
  }
};

/// dropout_key() of a pass.
struct DropoutKey {
  const PassKey* pass;  ///< null: PassKey()
  std::uint64_t layer;
  PhiloxKey* key;
  TROUPE_HOST_DEVICE void operator()(std::size_t) const {
    *key = dropout_key(pass != nullptr ? *pass : PassKey(), layer);
  }
};

/// Four elements: to = 0 with the probability, else from * kept. Element i goes by the i-th number
/// of the Philox stream of that key.
struct Dropout4 {
  static constexpr std::size_t kElements = 4;
  const float* from;
  float* to;
  std::size_t n;
  const PhiloxKey* key;
  float probability;
  float kept;  ///< 1 / (1 - probability)
  TROUPE_HOST_DEVICE void operator()(std::size_t block) const {
    const auto wide = static_cast<std::uint64_t>(block);
    const PhiloxWords numbers =
        philox_rounds(key->word[0], key->word[1],
                      {{static_cast<std::uint32_t>(wide), static_cast<std::uint32_t>(wide >> 32),
                        kPhiloxNumbers, 0}});
    for (std::size_t k = 0; k < kElements; ++k) {
      const std::size_t i = block * kElements + k;
      if (i < n) to[i] = from[i] * (philox_uniform(numbers.word[k]) < probability ? 0.0f : kept);
    }
  }
};

/// Runs of `run` floats that begin every so many floats.
struct CopyRuns {
  const float* from;
  std::size_t from_stride;
  float* to;
  std::size_t to_stride;
  std::size_t run;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t outer = i / run, inner = i % run;
    to[outer * to_stride + inner] = from[outer * from_stride + inner];
  }
};

/// rows[r, c] += x[c].
struct AddToRows {
  float* rows;
  const float* x;
  std::size_t width;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { rows[i] += x[i % width]; }
};

/// images[n, c, pixel] += x[c], of `area` pixels.
struct AddToChannels {
  float* images;
  const float* x;
  std::size_t channels, area;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { images[i] += x[i / area % channels]; }
};

/// sums[run, c] = the sum of rows[r, c] over the run's rows, first row first.
struct PartialColumnSums {
  const float* rows;
  std::size_t count, width;
  std::size_t run;  ///< rows of a run
  float* sums;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t begin = i / width * run, c = i % width;
    const std::size_t end = begin + run < count ? begin + run : count;
    float sum = 0.0f;
    for (std::size_t r = begin; r < end; ++r) sum += rows[r * width + c];
    sums[i] = sum;
  }
};

/// to[c] = the sum of sums[run, c], first run first.
struct SumOfRuns {
  const float* sums;
  std::size_t runs, width;
  float* to;
  TROUPE_HOST_DEVICE void operator()(std::size_t c) const {
    float sum = 0.0f;
    for (std::size_t run = 0; run < runs; ++run) sum += sums[run * width + c];
    to[c] = sum;
  }
};

}  // namespace troupe::kernels::cuda

/// All of them: `each` takes one that goes element by element.
#define TROUPE_ELEMENTWISE_BODIES(each)                                                          \
  each(troupe::kernels::cuda::ReluForward) each(troupe::kernels::cuda::ReluBackward)             \
      each(troupe::kernels::cuda::Sum) each(troupe::kernels::cuda::ReluOfSum)                    \
          each(troupe::kernels::cuda::DropoutKey) each(troupe::kernels::cuda::Dropout4)          \
              each(troupe::kernels::cuda::CopyRuns) each(troupe::kernels::cuda::AddToRows)       \
                  each(troupe::kernels::cuda::AddToChannels)                                     \
                      each(troupe::kernels::cuda::PartialColumnSums)                             \
                          each(troupe::kernels::cuda::SumOfRuns) TROUPE_ACTIVATION_BODIES(       \
                              each, troupe::kernels::GeluTanh)                                   \
                              TROUPE_ACTIVATION_BODIES(each, troupe::kernels::GeluErf)           \
                                  TROUPE_ACTIVATION_BODIES(each, troupe::kernels::SiluOf)        \
                                      TROUPE_ACTIVATION_BODIES(each, troupe::kernels::SigmoidOf) \
                                          TROUPE_ACTIVATION_BODIES(each, troupe::kernels::TanhOf)
#define TROUPE_ACTIVATION_BODIES(each, function)           \
  each(troupe::kernels::cuda::ActivationForward<function>) \
      each(troupe::kernels::cuda::ActivationBackward<function>)
