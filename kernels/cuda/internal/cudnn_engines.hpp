#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cudnn.h>

#include "kernels/cuda/internal/cudnn_descriptor.hpp"
#include "kernels/dtype.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::cuda {

/// An engine of cuDNN's, with its settings, for a graph.
struct ExactEngine {
  Descriptor config;
  std::int64_t number = 0;  ///< cuDNN's
};

/// The engines that cuDNN's heuristics propose for a finished graph, the one expected to be fastest
/// first; without those whose numerical notes say that they are not deterministic, or that they
/// compute in less than f32 (inputs or sums in lower precision, Winograd's larger tiles, and tensor
/// cores where the factors are f32). Errors: `not_supported` if the mode knows nothing of it.
Result<std::vector<ExactEngine>> exact_engines(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                               DType factors);

/// What runs a graph.
struct EnginePlan {
  /// Errors: as `check`; is_refusal() says which may be of this engine alone.
  static Result<EnginePlan> make(cudnnHandle_t handle, ExactEngine engine);

  Descriptor config, plan;
  std::size_t workspace_bytes = 0;
};

/// Whether an error may be of one engine alone, so that another one is tried. For lack of memory
/// none is left out: which one is taken, and with it the last bits, must not depend on that.
bool is_refusal(const Status& status);

}  // namespace troupe::kernels::cuda
