#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cudnn.h>

/// CUDA, cuBLASLt and cuDNN for a machine without a GPU: what of them kernels/cuda calls, on the
/// host's memory, at once. They check what they are given by the rules of the vendor's
/// documentation (sizes, alignments, attributes and their types, what must be finalized), compute
/// what the descriptors say, and write down what was asked. Memory begins as NaN, and every
/// workspace that a library was promised is overwritten with NaN at each call.
namespace troupe::stand_in {

/// A matrix as cuBLASLt was told of it: column-major.
struct Matrix {
  cudaDataType_t type{};
  std::uint64_t rows = 0, columns = 0;
  std::int64_t stride = 0;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;
};

/// A product that an algorithm was asked for.
struct MatmulAsked {
  cublasComputeType_t compute{};
  cudaDataType_t scale{};
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  Matrix a, b, c, d;
  std::uint64_t most_workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};

/// A tensor as cuDNN was told of it.
struct Tensor {
  std::int64_t id = 0;
  cudnnDataType_t type{};
  std::int64_t alignment = 0;
  std::vector<std::int64_t> dims, strides;
  bool is_virtual = false;
  bool by_value = false;
};

/// A convolution that a plan was made for.
struct ConvolutionPlanned {
  cudnnBackendDescriptorType_t type{};
  Tensor x, weight, y;
  cudnnDataType_t compute{};
  cudnnConvolutionMode_t mode{};
  std::vector<std::int64_t> strides, dilations, pre_paddings, post_paddings;
  float alpha = 0, beta = 0;
  std::optional<Tensor> copy = {};  ///< where a second operation writes the result, if there is one
  std::int64_t engine = 0;          ///< which of those that the heuristics gave
};

/// One operation of a graph that is no convolution.
struct GraphOperation {
  cudnnBackendDescriptorType_t type{};
  cudnnPointwiseMode_t pointwise{};
  cudnnReduceTensorOp_t reduction{};
  std::int64_t axis = 0;       ///< of CUDNN_POINTWISE_GEN_INDEX
  std::vector<Tensor> inputs;  ///< of a product the two; x, b and what selects between them
  Tensor output;
};

/// What was asked since the last reset. The tests are on one thread.
struct Record {
  std::vector<MatmulAsked> matmuls;
  std::vector<ConvolutionPlanned> convolutions;
  std::vector<std::vector<GraphOperation>> graphs;  ///< that a plan was made for
  int matmul_calls = 0;
  int convolution_calls = 0;
  int graph_calls = 0;
  std::int64_t last_engine = 0;  ///< that cuDNN ran
  int waiting_copies = 0;        ///< from the device to memory of the host that is not pinned
  int graphs_made = 0;           ///< CUDA's, which are not cuDNN's
  int graph_launches = 0;
};
Record& record();  // of the calling thread

/// How the stand-in behaves; set back by reset().
struct Behaviour {
  int devices = 1;
  cudaError_t device_count_error = cudaSuccess;
  std::size_t memory = std::size_t{1} << 40;
  /// Numerical notes of the engines that cuDNN proposes, in its order.
  std::vector<std::vector<cudnnBackendNumericalNote_t>> engines = {};
  std::int64_t first_engine = 0;  ///< cuDNN's number for the first of them
  /// What CUDA says that a run of each of them takes.
  std::vector<float> engine_milliseconds = {};
  /// Engines whose plan cannot be made.
  std::vector<std::int64_t> unsupported_engines = {};
  bool heuristics_supported = true;  ///< else mode A says "not supported"; the fallback works
  int compute_capability = 9;
  bool graphs_supported = true;                ///< of other operations than convolutions
  bool rounded_convolutions_supported = true;  ///< those of 16 bits
  bool has_algorithms = true;                  ///< cuBLASLt's
  bool captures = true;                        ///< whether a stream's work can be captured
};
Behaviour& behaviour();

/// Forgets the record, and goes back to the usual behaviour.
void reset();

/// Bytes that each library wants as a workspace.
inline constexpr std::size_t kWorkspace = 1000;

}  // namespace troupe::stand_in
