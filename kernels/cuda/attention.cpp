#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/matmul.hpp"
#include "kernels/cuda/internal/softmax_bodies.hpp"

namespace troupe::kernels::cuda {

namespace {

/// Sample by sample: the scores of all heads in the scratch, then their softmax, then the values.
/// The backward pass computes the scores again from the logarithms of their sums, as the CPU's. Of
/// queries that share keys and values, one of each group goes with the ones of the others: so their
/// gradients add up in one order.
class AttentionKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<AttentionKernel>(context, request);
    TROUPE_TRY(kernel->plan(request));
    const auto sums = static_cast<std::size_t>(kernel->batch_ * kernel->heads_ * kernel->tokens_);
    TROUPE_ASSIGN(kernel->log_sums_, context.allocate(sums * sizeof(float)));
    return MadeKernel(std::move(kernel));
  }

  AttentionKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request), batch_(request.batch()), scratch_(request.scratch) {
    const auto& spec = std::get<Attention>(request.layers[0].spec);
    heads_ = spec.heads;
    key_heads_ = spec.key_heads();
    causal_ = spec.causal;
    tokens_ = output_.shape[1];
    in_ = inputs_[0].shape[2];
    out_ = output_.shape[2];
    dim_ = out_ / heads_;
    scale_ = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim_)));
    const auto score_bytes = static_cast<std::size_t>(heads_ * score_floats()) * sizeof(float);
    scores_ = scratch_.add(score_bytes);
    if (request.mode == Mode::training) gradients_ = scratch_.add(score_bytes);
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

private:
  std::int64_t score_floats() const { return tokens_ * tokens_; }  ///< of a head
  std::int64_t sharing() const { return heads_ / key_heads_; }     ///< queries of the same keys

  // A batch of a product is the i-th queries of all groups: they lie `sharing` heads apart, and the
  // groups' keys and values one head.
  MatrixLayout queries() const {
    return {.stride = in_, .batch_stride = sharing() * dim_, .alignment = alignment()};
  }
  MatrixLayout keys() const {
    return {.stride = in_, .batch_stride = dim_, .alignment = alignment()};
  }
  MatrixLayout outputs() const {
    return {.stride = out_, .batch_stride = sharing() * dim_, .alignment = alignment()};
  }
  MatrixLayout scores() const {
    return {.stride = tokens_,
            .batch_stride = sharing() * score_floats(),
            .alignment = alignment_at(score_floats())};
  }
  /// Of any head's first element: a multiple of `dim_` floats from the start.
  std::uint32_t alignment() const { return alignment_at(dim_); }
  static MatrixLayout transposed(MatrixLayout layout) {
    layout.transposed = true;
    return layout;
  }

  Result<Matmul> product(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixLayout& a,
                         const MatrixLayout& b, const MatrixLayout& c, float alpha = 1.0f) {
    return Matmul::make(context(), {m, n, k, a, b, c, key_heads_, alpha}, scratch_);
  }

  Status plan(const KernelRequest& request) {
    TROUPE_ASSIGN(query_by_key_,
                  product(tokens_, tokens_, dim_, queries(), transposed(keys()), scores(), scale_));
    TROUPE_ASSIGN(score_by_value_, product(tokens_, dim_, tokens_, scores(), keys(), outputs()));
    if (request.mode == Mode::inference) return {};
    TROUPE_ASSIGN(value_gradient_,
                  product(tokens_, dim_, tokens_, transposed(scores()), outputs(), keys()));
    TROUPE_ASSIGN(score_gradient_,
                  product(tokens_, tokens_, dim_, outputs(), transposed(keys()), scores()));
    TROUPE_ASSIGN(query_gradient_, product(tokens_, dim_, tokens_, scores(), keys(), queries()));
    TROUPE_ASSIGN(key_gradient_,
                  product(tokens_, dim_, tokens_, transposed(scores()), queries(), keys()));
    return {};
  }

  Status enqueue(const Matmul& matmul, CudaStream& stream, const float* a, const float* b,
                 float beta, float* c) {
    return matmul.enqueue(context(), stream.handle(), scratch_, a, b, beta, c);
  }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    for (std::int64_t sample = 0; sample < batch_; ++sample) {
      const float* const in = pass.input() + sample * tokens_ * in_;
      float* const out = pass.output + sample * tokens_ * out_;
      TROUPE_TRY(compute_scores(stream, in));
      TROUPE_TRY(for_each_row(stream.handle(), score_rows(),
                              SoftmaxForward{rows(), at(scores_), log_sums(sample)}));
      for (std::int64_t i = 0; i < sharing(); ++i)
        TROUPE_TRY(enqueue(score_by_value_, stream, at(scores_) + i * score_floats(),
                           in + value_offset(), 0.0f, out + i * dim_));
    }
    return {};
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    for (std::int64_t sample = 0; sample < batch_; ++sample)
      TROUPE_TRY(sample_backward(stream, sample, pass.input() + sample * tokens_ * in_,
                                 pass.output_gradient + sample * tokens_ * out_,
                                 pass.input_gradient() + sample * tokens_ * in_));
    return {};
  }

  Status sample_backward(CudaStream& stream, std::int64_t sample, const float* in,
                         const float* given, float* to) {
    float *const p = at(scores_), *const dp = at(gradients_);
    TROUPE_TRY(compute_scores(stream, in));
    TROUPE_TRY(for_each(stream.handle(), static_cast<std::size_t>(heads_ * score_floats()),
                        SoftmaxAgain{rows(), p, log_sums(sample)}));
    for (std::int64_t i = 0; i < sharing(); ++i) {
      const std::int64_t score = i * score_floats(), query = i * dim_;
      TROUPE_TRY(
          enqueue(value_gradient_, stream, p + score, given + query, beta(i), to + value_offset()));
      TROUPE_TRY(
          enqueue(score_gradient_, stream, given + query, in + value_offset(), 0.0f, dp + score));
    }
    TROUPE_TRY(for_each_row(stream.handle(), score_rows(), SoftmaxBackward{rows(), p, dp, scale_}));
    for (std::int64_t i = 0; i < sharing(); ++i) {
      const std::int64_t score = i * score_floats(), query = i * dim_;
      TROUPE_TRY(enqueue(query_gradient_, stream, dp + score, in + key_offset(), 0.0f, to + query));
      TROUPE_TRY(
          enqueue(key_gradient_, stream, dp + score, in + query, beta(i), to + key_offset()));
    }
    return {};
  }

  Status compute_scores(CudaStream& stream, const float* in) {
    for (std::int64_t i = 0; i < sharing(); ++i)
      TROUPE_TRY(enqueue(query_by_key_, stream, in + i * dim_, in + key_offset(), 0.0f,
                         at(scores_) + i * score_floats()));
    return {};
  }

  static float beta(std::int64_t i) { return i == 0 ? 0.0f : 1.0f; }
  std::int64_t key_offset() const { return heads_ * dim_; }
  std::int64_t value_offset() const { return (heads_ + key_heads_) * dim_; }
  float* at(std::size_t place) const { return reinterpret_cast<float*>(scratch_.at(place)); }
  float* log_sums(std::int64_t sample) { return floats(log_sums_) + sample * heads_ * tokens_; }
  ScoreRows rows() const { return {static_cast<std::size_t>(tokens_), causal_}; }
  std::size_t score_rows() const { return static_cast<std::size_t>(heads_ * tokens_); }

  std::int64_t batch_;
  std::int64_t heads_ = 1, key_heads_ = 1;
  bool causal_ = false;
  std::int64_t tokens_ = 0, dim_ = 0;
  std::int64_t in_ = 0, out_ = 0;  ///< floats of a token
  float scale_ = 1.0f;
  ScratchPlaces scratch_;
  std::size_t scores_ = 0, gradients_ = 0;  ///< in the scratch: [heads, tokens, tokens]
  Matmul query_by_key_, score_by_value_;
  Matmul value_gradient_, score_gradient_, query_gradient_, key_gradient_;
  Buffer log_sums_;  ///< of each sample, head and token
};

}  // namespace

MadeKernel make_attention(Context& context, const KernelRequest& request) {
  return AttentionKernel::make(context, request);
}

}  // namespace troupe::kernels::cuda
