#include "kernels/cuda/internal/attention_graph.hpp"

#include <optional>

#include "kernels/cuda/internal/graph_builder.hpp"

namespace troupe::kernels::cuda {

namespace {

/// The layouts and steps that both passes have.
class AttentionGraph {
public:
  using Value = GraphBuilder::Value;

  AttentionGraph(const AttentionSizes& sizes, DType type)
      : sizes_(sizes), type_(cudnn_type(type)), graph_(type) {
    const auto [batch, heads, key_heads, tokens, dim, causal] = sizes;
    const std::int64_t in = (heads + 2 * key_heads) * dim, out = heads * dim;
    queries_ = {{batch, heads, tokens, dim}, {tokens * in, dim, in, 1}};
    keys_ = {{batch, key_heads, tokens, dim}, {tokens * in, dim, in, 1}};
    outputs_ = {{batch, heads, tokens, dim}, {tokens * out, dim, out, 1}};
    scores_ = GraphLayout::packed({batch, heads, tokens, tokens});
    rows_ = GraphLayout::packed({batch, heads, tokens, 1});
  }

  Result<Graph> forward() {
    const Value masked = mask(scaled_scores(short_tensor(kKeys, keys_.transposed())));
    // The softmax, with the logarithms of its sums.
    const Value greatest = graph_.between(rows_), sum = graph_.between(rows_);
    graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, greatest, masked);
    const Value powers = apply(CUDNN_POINTWISE_EXP, apply(CUDNN_POINTWISE_SUB, masked, greatest));
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, sum, powers);
    const Value log_sum = graph_.between(rows_);
    graph_.pointwise(CUDNN_POINTWISE_LOG, log_sum, sum);
    graph_.pointwise(CUDNN_POINTWISE_ADD, log_sums(), greatest, log_sum);
    const Value probabilities = graph_.between(scores_, type_);
    graph_.pointwise(CUDNN_POINTWISE_DIV, probabilities, powers, sum);
    graph_.matmul(probabilities, short_tensor(kValues, keys_), short_tensor(kOutput, outputs_));
    return graph_.finish();
  }

  /// With p the probabilities: dv = p^T dy, dp = dy v^T, ds = p (dp - the rows' sums of dy y)
  /// scale, dq = ds k, dk = ds^T q.
  Result<Graph> backward() {
    const Value given = short_tensor(kOutputGradient, outputs_);
    const Value row_sums = sums_of_rows(given);
    const Value keys = short_tensor(kKeys, keys_.transposed());
    const Value queries = short_tensor(kQueries, queries_);
    const Value shifted = apply(CUDNN_POINTWISE_SUB, scaled_scores(keys, queries), log_sums());
    const Value p = apply(CUDNN_POINTWISE_EXP, mask(shifted));
    key_product(p, given, kValueGradient);
    const Value dp = graph_.between(scores_);
    graph_.matmul(given, short_tensor(kValues, keys_.transposed()), dp);
    const Value bent = apply(CUDNN_POINTWISE_MUL, apply(CUDNN_POINTWISE_SUB, dp, row_sums), p);
    const Value ds = graph_.between(scores_, type_);
    graph_.pointwise(CUDNN_POINTWISE_MUL, ds, bent, *scale_);
    key_product(ds, queries, kKeyGradient);
    const Value upright = graph_.between(keys_, type_);
    graph_.reshape(upright, keys);
    graph_.matmul(ds, upright, short_tensor(kQueryGradient, queries_));
    return graph_.finish();
  }

private:
  Value short_tensor(std::int64_t id, const GraphLayout& layout) {
    return graph_.tensor(id, layout, type_);
  }
  Value log_sums() { return graph_.tensor(kLogSums, rows_, CUDNN_DATA_FLOAT); }

  /// A function of scores.
  Value apply(cudnnPointwiseMode_t mode, Value x, std::optional<Value> b = {}) {
    const Value to = graph_.between(scores_);
    graph_.pointwise(mode, to, x, b);
    return to;
  }

  Value scaled_scores(Value keys) { return scaled_scores(keys, short_tensor(kQueries, queries_)); }
  Value scaled_scores(Value keys, Value queries) {
    const Value scores = graph_.between(scores_);
    graph_.matmul(queries, keys, scores);
    scale_ = graph_.scalar(kScale);
    return apply(CUDNN_POINTWISE_MUL, scores, *scale_);
  }

  /// Where a token attends to itself and those before it only.
  Value mask(Value scores) {
    if (!sizes_.causal) return scores;
    const Value row = graph_.between(scores_, CUDNN_DATA_INT32);
    const Value column = graph_.between(scores_, CUDNN_DATA_INT32);
    const Value attended = graph_.between(scores_, CUDNN_DATA_BOOLEAN);
    graph_.index(2, row, scores);
    graph_.index(3, column, scores);
    graph_.pointwise(CUDNN_POINTWISE_CMP_GE, attended, row, column);
    const Value to = graph_.between(scores_);
    graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, to, scores, graph_.scalar(kMasked), attended);
    return to;
  }

  Value sums_of_rows(Value given) {
    const Value products = graph_.between(GraphLayout::packed(outputs_.dims));
    const Value sums = graph_.between(rows_);
    graph_.pointwise(CUDNN_POINTWISE_MUL, products, given, short_tensor(kOutput, outputs_));
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, sums, products);
    const Value to = graph_.tensor(kRowSums, rows_, CUDNN_DATA_FLOAT);
    graph_.pointwise(CUDNN_POINTWISE_MUL, to, sums, graph_.scalar(kOne));
    return to;
  }

  /// scores^T x, the heads that share keys added up.
  void key_product(Value scores, Value x, std::int64_t id) {
    const Value turned = graph_.between(scores_.transposed(), type_);
    graph_.reshape(turned, scores);
    const Value to = short_tensor(id, keys_);
    if (sizes_.heads == sizes_.key_heads) {
      graph_.matmul(turned, x, to);
      return;
    }
    const Value of_each_head = graph_.between(GraphLayout::packed(queries_.dims), type_);
    graph_.matmul(turned, x, of_each_head);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, to, of_each_head);
  }

  AttentionSizes sizes_;
  cudnnDataType_t type_;
  GraphBuilder graph_;
  GraphLayout queries_{}, keys_{}, outputs_{}, scores_{}, rows_{};
  std::optional<Value> scale_;
};

}  // namespace

Result<Graph> attention_forward_graph(const AttentionSizes& sizes, DType type) {
  return AttentionGraph(sizes, type).forward();
}

Result<Graph> attention_backward_graph(const AttentionSizes& sizes, DType type) {
  return AttentionGraph(sizes, type).backward();
}

}  // namespace troupe::kernels::cuda
