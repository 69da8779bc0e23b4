#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cuda/internal/cudnn_graph.hpp"
#include "kernels/dtype.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::cuda {

/// How a tensor of four dimensions lies, in elements.
struct GraphLayout {
  std::array<std::int64_t, 4> dims, strides;

  static GraphLayout packed(const std::array<std::int64_t, 4>& dims);
  /// The same elements with the last two dimensions swapped.
  GraphLayout transposed() const;
};

/// Puts a graph of several operations together: tensors first, then what is done with them, in
/// order; finish() gives the first error. Operations compute in f32, indices and comparisons aside.
///
/// Threads: one.
class GraphBuilder {
public:
  using Value = std::size_t;

  explicit GraphBuilder(DType factors) { graph_.factors = factors; }

  /// One that is given an address under `id`, below 1000.
  Value tensor(std::int64_t id, const GraphLayout& layout, cudnnDataType_t type);
  /// A float of the host's, which is read when the plan is enqueued.
  Value scalar(std::int64_t id);
  /// One between two operations.
  Value between(const GraphLayout& layout, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  /// Batches of products of the last two dimensions. Where b has fewer of the second dimension, so
  /// many of a's in a row share one.
  void matmul(Value a, Value b, Value to);
  /// An element-wise function of x; of x and b; of x and b where `select` says which. A dimension
  /// of 1 goes with any.
  void pointwise(cudnnPointwiseMode_t mode, Value to, Value x, std::optional<Value> b = {},
                 std::optional<Value> select = {});
  /// Each element's place along `axis` of x.
  void index(std::int64_t axis, Value to, Value x);
  /// Over the dimensions of which `to` has fewer.
  void reduce(cudnnReduceTensorOp_t operation, Value to, Value x);
  /// The same memory under other dimensions and strides.
  void reshape(Value to, Value x);

  Result<Graph> finish();

private:
  struct Made {
    std::size_t part;  ///< of the graph's
    cudnnDataType_t type;
  };
  struct TensorKind {
    bool is_virtual = false, by_value = false;
  };
  Value add_tensor(std::int64_t id, const GraphLayout& layout, cudnnDataType_t type,
                   const TensorKind& kind);
  void add_operation(DescriptorBuilder& builder);
  std::size_t add_part(DescriptorBuilder& builder);
  const Descriptor& at(Value value) const { return graph_.parts[values_[value].part]; }
  cudnnDataType_t math_of(Value value) const;

  Status status_;
  Graph graph_;
  std::vector<Made> values_;
  std::int64_t next_id_ = 1000;
};

}  // namespace troupe::kernels::cuda
