#pragma once

#include <cstdint>

#include "kernels/cuda/internal/cudnn_graph.hpp"
#include "kernels/dtype.hpp"

// Attention as the graph of operations that cuDNN runs as one kernel without scores in memory: Dao
// et al., "FlashAttention" (2022). cuDNN knows it by its form, which is that of NVIDIA's
// cudnn-frontend (CompositeSDPANode, CompositeSDPABackwardNode).
namespace troupe::kernels::cuda {

struct AttentionSizes {
  std::int64_t batch, heads, key_heads, tokens, dim;
  bool causal;
};

/// By which a plan is given its tensors. Queries, keys and values lie as Attention's input does,
/// [batch, tokens, (heads + 2 key_heads) dim], each with the address of its own first element, and
/// so do their gradients; the output and its gradient are [batch, tokens, heads dim]. They have 16
/// bits.
enum AttentionTensor : std::int64_t {
  kQueries = 1,
  kKeys,
  kValues,
  kOutput,
  kLogSums,  ///< f32 [batch, heads, tokens]: the logarithms of the sums of e^score
  kOutputGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kRowSums,  ///< f32, as the log sums: for cuDNN's own use in the backward pass
  // Floats of the host's.
  kScale,   ///< 1 / sqrt(dim)
  kMasked,  ///< a score that no key is attended by: finite, but e^it is 0
  kOne,     ///< 1
};

Result<Graph> attention_forward_graph(const AttentionSizes& sizes, DType type);
/// In the form that adds the queries' gradient up without atomic additions: the result of one
/// product, not a tensor of f32 of the caller's that is added to.
Result<Graph> attention_backward_graph(const AttentionSizes& sizes, DType type);

}  // namespace troupe::kernels::cuda
