#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Scaled dot-product attention of several heads: softmax(Q K^T / sqrt(head_dim)) V for each.
/// Vaswani et al., "Attention is all you need" (2017), section 3.2.
///
/// Input: [tokens, (heads + 2 * kv_heads) * head_dim], for each token the queries of all heads,
/// then the keys, then the values, as GPT-2's `c_attn` gives them. Output: [tokens, heads *
/// head_dim]. With fewer heads of keys and values than of queries, runs of heads / kv_heads queries
/// share one: Ainslie et al., "GQA" (2023).
struct Attention {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;  ///< `heads` is a multiple of it; 0 is as many as `heads`
  bool causal = true;         ///< a token attends to itself and those before it only

  std::int64_t key_heads() const { return kv_heads == 0 ? heads : kv_heads; }

  std::string describe() const { return "attention"; }
  Result<Shape> output_shape(std::span<const Shape> inputs) const;
};

}  // namespace troupe::kernels
