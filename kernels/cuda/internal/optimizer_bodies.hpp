#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/host_device.hpp"

// The updates of kernels/optimizers, element by element, in the same operations and order.
namespace troupe::kernels::cuda {

struct SgdStep {
  float learning_rate, gradient_scale, momentum, weight_decay;
  bool nesterov;
  const float* gradient;
  float* w;
  float* buffer;  ///< null without momentum
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    float g = gradient[i] * gradient_scale + weight_decay * w[i];
    if (buffer != nullptr) {
      buffer[i] = momentum * buffer[i] + g;
      g = nesterov ? g + momentum * buffer[i] : buffer[i];
    }
    w[i] -= learning_rate * g;
  }
};

/// What moves the moments, as MomentFactors of kernels/internal/moments.hpp.
struct MomentStep {
  float gradient_scale, fresh_mean, beta2, fresh_square;
  TROUPE_HOST_DEVICE void move(float g, float& mean, float& square) const {
    mean += fresh_mean * (g - mean);
    square = beta2 * square + fresh_square * (g * g);
  }
};

/// Adam and AdamW, which differ in where the weights decay.
struct AdamStep {
  MomentStep moments;
  float gradient_decay;  ///< adam: times w, to the gradient
  float keep;            ///< adamw: of w; 1 without decay
  float rate;            ///< with the mean's correction
  float root_correction, epsilon;
  const float* gradient;
  float* w;
  float* m;
  float* v;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const float g = gradient[i] * moments.gradient_scale + gradient_decay * w[i];
    moments.move(g, m[i], v[i]);
    const float root = std::sqrt(v[i]) * root_correction + epsilon;
    w[i] = keep * w[i] - rate * (m[i] / root);
  }
};

struct LambMoments {
  MomentStep moments;
  const float* gradient;
  float* m;
  float* v;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    moments.move(gradient[i] * moments.gradient_scale, m[i], v[i]);
  }
};

/// Where LAMB goes.
struct LambDirection {
  float mean_correction, root_correction, epsilon, weight_decay;
  const float* w;
  const float* m;
  const float* v;
  TROUPE_HOST_DEVICE float operator()(std::size_t i) const {
    const float root = std::sqrt(v[i]) * root_correction + epsilon;
    return m[i] * mean_correction / root + weight_decay * w[i];
  }
};

struct LambStep {
  LambDirection direction;
  const float* rate;  ///< of the parameter
  float* w;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const { w[i] -= *rate * direction(i); }
};

struct LarsStep {
  float gradient_scale, momentum, weight_decay;
  const float* rate;  ///< of the parameter
  const float* gradient;
  float* w;
  float* buffer;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const float g = gradient[i] * gradient_scale + weight_decay * w[i];
    buffer[i] = momentum * buffer[i] + *rate * g;
    w[i] -= buffer[i];
  }
};

/// What update_statistics() does.
struct StatisticStep {
  float momentum, scale;
  const float* sums;
  float* x;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    x[i] += momentum * (sums[i] * scale - x[i]);
  }
};

/// An element as it lies.
struct Element {
  const float* values;
  TROUPE_HOST_DEVICE float operator()(std::size_t i) const { return values[i]; }
};

/// The squares of a block of elements in double: kernels/internal/square_sum.hpp's blocks and
/// lanes.
template <class Value>
struct SquareBlocks {
  static constexpr std::size_t kBlock = 4096;
  static constexpr std::size_t kLanes = 8;
  Value value;
  std::size_t n;
  double* sums;  ///< of each block
  TROUPE_HOST_DEVICE void operator()(std::size_t block) const {
    double lanes[kLanes] = {};
    const std::size_t begin = block * kBlock;
    const std::size_t end = begin + kBlock < n ? begin + kBlock : n;
    for (std::size_t i = begin; i < end; ++i) {
      const auto wide = static_cast<double>(value(i));
      lanes[(i - begin) % kLanes] += wide * wide;
    }
    sums[block] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                  ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
};

/// The sum of the blocks along square_sum.hpp's tree, whose left part is the largest power of two.
TROUPE_HOST_DEVICE inline double sum_of_blocks(const double* sums, std::size_t n) {
  constexpr std::size_t kBlock = SquareBlocks<Element>::kBlock;
  const std::size_t whole = n / kBlock;
  double levels[52];  // of 2^level blocks, for each bit that is set in the number of blocks
  for (std::size_t block = 0; block < whole; ++block) {
    double sum = sums[block];
    std::size_t level = 0;
    for (; (block >> level & 1) != 0; ++level) sum = levels[level] + sum;
    levels[level] = sum;
  }
  double sum = n % kBlock == 0 ? 0.0 : sums[whole];
  for (std::size_t level = 0; whole >> level != 0; ++level)
    if ((whole >> level & 1) != 0) sum = levels[level] + sum;
  return sum;
}

/// The rate of one parameter by LAMB or LARS, from the squares of its weights and of where it goes.
struct TrustRate {
  bool lars;
  const double* of_weights;
  const double* of_step;  ///< lamb: the direction's; lars: the gradient's
  std::size_t n;
  double learning_rate;
  double gradient_scale;                   ///< lars
  double trust_coefficient, weight_decay;  ///< lars
  float* rate;
  TROUPE_HOST_DEVICE void operator()(std::size_t) const {
    const double weights = std::sqrt(sum_of_blocks(of_weights, n));
    double step = std::sqrt(sum_of_blocks(of_step, n));
    if (lars) step = gradient_scale * step;
    double ratio = 1;
    if (weights > 0 && step > 0)
      ratio = lars ? trust_coefficient * weights / (step + weight_decay * weights) : weights / step;
    *rate = static_cast<float>(learning_rate * ratio);
  }
};

/// The same for a parameter without a ratio.
struct PlainRate {
  float value;
  float* rate;
  TROUPE_HOST_DEVICE void operator()(std::size_t) const { *rate = value; }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_OPTIMIZER_BODIES(each)                                                             \
  each(troupe::kernels::cuda::SgdStep) each(troupe::kernels::cuda::AdamStep)                      \
      each(troupe::kernels::cuda::LambMoments) each(troupe::kernels::cuda::LambStep)              \
          each(troupe::kernels::cuda::LarsStep) each(troupe::kernels::cuda::StatisticStep)        \
              each(troupe::kernels::cuda::SquareBlocks<troupe::kernels::cuda::Element>)           \
                  each(troupe::kernels::cuda::SquareBlocks<troupe::kernels::cuda::LambDirection>) \
                      each(troupe::kernels::cuda::TrustRate)                                      \
                          each(troupe::kernels::cuda::PlainRate)
