#pragma once

#include <cstdint>

#include "kernels/cuda/internal/cudnn_graph.hpp"
#include "kernels/dtype.hpp"
#include "kernels/layers/convolution.hpp"
#include "kernels/shape.hpp"

namespace troupe::kernels::cuda {

/// The operations of a convolution: y of x and weight, dweight of x and dy, dx of weight and dy.
enum class ConvolutionPass : std::uint8_t { forward, weight_gradient, input_gradient };

/// By which a plan of any of them is given its tensors, or their gradients.
enum ConvolutionTensor : std::int64_t { kConvolutionX = 1, kConvolutionWeight, kConvolutionY };

/// What is to be planned: [batch, channels, height, width], the weight [out, in / groups, kernel,
/// kernel]; cuDNN takes the number of groups from the two numbers of input channels.
struct ConvolutionShapes {
  Shape x, weight, y;
};

/// Channels that an operation on factors of 16 bits has a multiple of: cuDNN's engines for them
/// want 16 bytes.
inline constexpr std::int64_t kChannelAlignment = 8;

/// A plan whose result is f32. With factors in f32 all tensors are row-major. With factors of 16
/// bits all are channels last, the result too: no engine of cuDNN's has another layout or type
/// there for a result in f32, and it must be an operation of its own that writes that.
///
/// Errors: as GraphPlan::make.
Result<GraphPlan> plan_convolution(Context& context, ConvolutionPass pass, const Convolution& spec,
                                   const ConvolutionShapes& shapes, DType factors,
                                   ScratchPlaces scratch);

}  // namespace troupe::kernels::cuda
