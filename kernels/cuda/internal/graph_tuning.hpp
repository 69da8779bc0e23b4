#pragma once

#include <optional>

#include "kernels/cuda/internal/context.hpp"
#include "kernels/cuda/internal/cudnn_graph.hpp"

namespace troupe::kernels::cuda {

/// The plan of the engine that the context's file of engines names for a finished graph; where it
/// names none and is to measure, of the fastest one, which is added to it. Nothing where the file
/// has no say: no line, or one for an engine that cuDNN does not propose at that place or cannot
/// make a plan with.
///
/// Errors: of measuring, and of writing the file.
Result<std::optional<EnginePlan>> tuned_plan(Context& context, cudnnHandle_t handle,
                                             const Descriptor& graph, DType factors,
                                             const GraphTuning& tuning);

}  // namespace troupe::kernels::cuda
