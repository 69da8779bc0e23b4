#include "kernels/cuda/internal/convolution_graph.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::kernels::cuda {

namespace {

// Of what a convolution gives before it is written as f32.
constexpr std::int64_t kVirtual = 4;

/// Which of cuDNN's attributes an operation's parts are.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, weight, y, alpha, beta;
  ConvolutionTensor result;
  const char* word;
};
constexpr OperationNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                  kConvolutionY,
                                  "forward"};
constexpr OperationNames kBackwardData{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                       kConvolutionX,
                                       "input gradient"};
constexpr OperationNames kBackwardFilter{
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
    kConvolutionWeight,
    "weight gradient"};

const OperationNames& names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::weight_gradient:
      return kBackwardFilter;
    case ConvolutionPass::input_gradient:
      return kBackwardData;
    default:
      return kForward;
  }
}

Result<Descriptor> describe_windows(const Convolution& spec) {
  const auto twice = [](std::int64_t value) { return std::array{value, value}; };
  return DescriptorBuilder(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, twice(spec.stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, twice(spec.dilation))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, twice(spec.padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, twice(spec.padding))
      .finish();
}

std::array<std::int64_t, 4> strides_of(const Shape& shape, bool channels_last) {
  const std::int64_t channels = shape[1], height = shape[2], width = shape[3];
  if (channels_last) return {channels * height * width, 1, width * channels, channels};
  return {channels * height * width, height * width, width, 1};
}

/// The operation that gives a tensor of f32 another address.
Result<Descriptor> copy_operation(const Descriptor& from, const Descriptor& to,
                                  std::vector<Descriptor>& parts) {
  TROUPE_ASSIGN(Descriptor identity, DescriptorBuilder(CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
                                         .set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_IDENTITY)
                                         .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
                                         .finish());
  auto operation = DescriptorBuilder(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
                       .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, identity)
                       .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from)
                       .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to)
                       .finish();
  parts.push_back(std::move(identity));
  return operation;
}

/// The tensors of a convolution as it lies there for these factors.
class Tensors {
public:
  Tensors(const ConvolutionShapes& shapes, ConvolutionTensor result, DType factors)
      : shapes_{&shapes.x, &shapes.weight, &shapes.y}, result_(result), factors_(factors) {}

  bool rounded() const { return factors_ != DType::f32; }
  /// What the convolution reads or writes.
  Result<Descriptor> of_convolution(ConvolutionTensor tensor) const {
    if (tensor != result_) return describe(tensor, tensor, cudnn_type(factors_), false);
    return describe(tensor, rounded() ? std::int64_t{kVirtual} : tensor, CUDNN_DATA_FLOAT,
                    rounded());
  }
  /// What it is called in a file of engines, and how much memory it takes to measure it.
  GraphTuning tuning(std::string_view pass, const Convolution& spec) const {
    GraphTuning tuning;
    tuning.name = fmt::format(
        "convolution {} in {}, x {}, weight {}, y {}, stride {}, padding {}, dilation {}", pass,
        to_string(factors_), to_string(*shapes_[0]), to_string(*shapes_[1]), to_string(*shapes_[2]),
        spec.stride, spec.padding, spec.dilation);
    for (const auto tensor : {kConvolutionX, kConvolutionWeight, kConvolutionY}) {
      const auto elements = static_cast<std::size_t>(
          shapes_[static_cast<std::size_t>(tensor - kConvolutionX)]->elements());
      tuning.tensors.push_back({tensor, elements * sizeof(float)});
    }
    return tuning;
  }
  /// Where the result goes in the end.
  Result<Descriptor> of_result() const {
    return describe(result_, result_, CUDNN_DATA_FLOAT, false);
  }

private:
  Result<Descriptor> describe(ConvolutionTensor tensor, std::int64_t id, cudnnDataType_t type,
                              bool is_virtual) const {
    const Shape& shape = *shapes_[static_cast<std::size_t>(tensor - kConvolutionX)];
    const auto strides = strides_of(shape, rounded());
    return GraphTensor{id, shape.dims(), strides, type, is_virtual}.describe();
  }

  std::array<const Shape*, 3> shapes_;
  ConvolutionTensor result_;
  DType factors_;
};

}  // namespace

Result<GraphPlan> plan_convolution(Context& context, ConvolutionPass pass, const Convolution& spec,
                                   const ConvolutionShapes& shapes, DType factors,
                                   ScratchPlaces scratch) {
  const OperationNames& names = names_of(pass);
  const Tensors tensors(shapes, names.result, factors);
  TROUPE_ASSIGN(Descriptor windows, describe_windows(spec));
  TROUPE_ASSIGN(Descriptor x, tensors.of_convolution(kConvolutionX));
  TROUPE_ASSIGN(Descriptor weight, tensors.of_convolution(kConvolutionWeight));
  TROUPE_ASSIGN(Descriptor y, tensors.of_convolution(kConvolutionY));
  TROUPE_ASSIGN(Descriptor convolution, DescriptorBuilder(names.type)
                                            .set(names.convolution, windows)
                                            .set(names.x, x)
                                            .set(names.weight, weight)
                                            .set(names.y, y)
                                            .set(names.alpha, 1.0f)
                                            .set(names.beta, 0.0f)
                                            .finish());
  Graph graph;
  graph.factors = factors;
  graph.operations.push_back(std::move(convolution));
  if (tensors.rounded()) {
    TROUPE_ASSIGN(Descriptor result, tensors.of_result());
    const Descriptor& given = names.result == kConvolutionX        ? x
                              : names.result == kConvolutionWeight ? weight
                                                                   : y;
    TROUPE_ASSIGN(Descriptor copy, copy_operation(given, result, graph.parts));
    graph.operations.push_back(std::move(copy));
    graph.parts.push_back(std::move(result));
  }
  for (Descriptor* part : {&windows, &x, &weight, &y}) graph.parts.push_back(std::move(*part));
  const GraphTuning tuning = tensors.tuning(names.word, spec);
  return GraphPlan::make(context, std::move(graph), scratch, &tuning);
}

}  // namespace troupe::kernels::cuda
