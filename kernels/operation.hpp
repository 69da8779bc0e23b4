#pragma once

#include <cstdint>

namespace troupe::kernels {

/// What there are kernels for: the key's first part, with element type and device.
enum class Operation : std::uint8_t {
  convolution,
  linear,
  batch_norm,
  synchronized_batch_norm,
  relu,
  max_pooling,
  average_pooling,
  adaptive_pooling,
  add,
  embedding,
  position_embedding,
  layer_norm,
  rms_norm,
  group_norm,
  gelu,
  silu,
  sigmoid,
  tanh,
  concat,
  dropout,
  attention,
  lstm,
  custom,  ///< the user's
  alias,   ///< the same elements under another shape
  // Several layers in one.
  convolution_relu_max_pooling,
  convolution_batch_norm,
  convolution_batch_norm_relu,
  convolution_batch_norm_add_relu,
  convolution_relu,
  linear_gelu,
  batch_norm_relu,
  synchronized_batch_norm_relu,
  add_relu,
};

}  // namespace troupe::kernels
