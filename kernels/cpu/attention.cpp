#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "kernels/cpu/internal/dnnl_support.hpp"
#include "kernels/cpu/internal/gemm.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/cpu/internal/portable.hpp"
#include "kernels/internal/portable_math.hpp"
#include "kernels/internal/wide_loop.hpp"
#include "kernels/internal/wide_math.hpp"
#include "kernels/internal/wide_rows.hpp"

namespace troupe::kernels::cpu {

namespace {

/// A run of queries of one head against its first `keys` keys; row r attends to the first
/// `attended(r)` of them.
struct Block {
  std::size_t rows;
  std::size_t keys;
  std::size_t stride;  ///< of the scores
  std::size_t first;   ///< keys that row 0 attends to
  std::size_t growth;  ///< by which each row attends to more: 1 if causal

  [[gnu::always_inline]] std::size_t attended(std::size_t row) const {
    return first + row * growth;
  }
};

}  // namespace

// Scores become powers, those of keys that are not attended to zero; `log_sums` and `factors` get
// for each row the logarithm of the sum of e^score, and one over the sum of the powers.
TROUPE_WIDE_LOOP(exponentiate, (const Block& block, float* scores, float* log_sums, float* factors),
                 (block, scores, log_sums, factors)) {
  for (std::size_t row = 0; row < block.rows; ++row) {
    float* const x = scores + row * block.stride;
    const std::size_t n = block.attended(row);
    const float greatest = wide::greatest(x, n);
    TROUPE_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) x[i] = wide::exp(x[i] - greatest);
    for (std::size_t i = n; i < block.keys; ++i) x[i] = 0.0f;
    const float sum = wide::sum(x, n);
    factors[row] = 1.0f / sum;
    // A NaN goes on by the factors.
    log_sums[row] = greatest + (sum >= 1.0f ? static_cast<float>(portable_log(sum)) : 0.0f);
  }
}

TROUPE_WIDE_LOOP(scale_rows,
                 (std::size_t rows, std::size_t n, const float* factors, float* x,
                  std::size_t stride),
                 (rows, n, factors, x, stride)) {
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < n; ++i) x[row * stride + i] *= factors[row];
}

// Scores become probabilities again.
TROUPE_WIDE_LOOP(probabilities, (const Block& block, float* scores, const float* log_sums),
                 (block, scores, log_sums)) {
  for (std::size_t row = 0; row < block.rows; ++row) {
    float* const x = scores + row * block.stride;
    const float log_sum = log_sums[row];
    const std::size_t n = block.attended(row);
    TROUPE_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) x[i] = wide::exp(x[i] - log_sum);
    for (std::size_t i = n; i < block.keys; ++i) x[i] = 0.0f;
  }
}

// The probabilities' gradients become the scores', times `scale`: of a row of the softmax p,
// dx = p (dp - sum of p dp).
TROUPE_WIDE_LOOP(softmax_backward,
                 (const Block& block, const float* probability, float* gradient, float scale),
                 (block, probability, gradient, scale)) {
  for (std::size_t row = 0; row < block.rows; ++row) {
    const float* const p = probability + row * block.stride;
    float* const g = gradient + row * block.stride;
    // Beyond what is attended to p is zero.
    const float sum = wide::dot(p, g, block.keys);
    TROUPE_INDEPENDENT
    for (std::size_t i = 0; i < block.keys; ++i) g[i] = p[i] * (g[i] - sum) * scale;
  }
}

namespace {

/// Heads of all samples side by side on the threads, each in blocks of queries whose scores stay in
/// the cache. The backward pass computes the scores again from the logarithms of their sums: Dao et
/// al., "FlashAttention" (2022), section 3.1, but with whole rows, which are short here. Queries
/// that share keys are one after the other, so that those' gradients add up in one order.
class AttentionKernel final : public LayerKernel {
public:
  static MadeKernel make(const KernelRequest& request) {
    auto kernel = std::make_unique<AttentionKernel>(request);
    const auto floats = [](std::size_t n) { return static_cast<Index>(n); };
    TROUPE_ASSIGN(kernel->log_sums_,
                  Scratch::zeros(floats(kernel->batch_ * kernel->heads_ * kernel->tokens_)));
    TROUPE_ASSIGN(
        kernel->scratch_,
        Scratch::zeros(floats(kernel->part_floats() * static_cast<std::size_t>(kernel->threads_))));
    return MadeKernel(std::move(kernel));
  }

  explicit AttentionKernel(const KernelRequest& request)
      : threads_(request.threads), batch_(static_cast<std::size_t>(request.batch())) {
    const auto& spec = std::get<Attention>(request.layers[0].spec);
    heads_ = static_cast<std::size_t>(spec.heads);
    key_heads_ = static_cast<std::size_t>(spec.key_heads());
    causal_ = spec.causal;
    inputs_ = {plain_activation(request.input().shape)};
    output_ = plain_activation(request.output_shape());
    tokens_ = static_cast<std::size_t>(output_.shape[1]);
    in_ = static_cast<std::size_t>(inputs_[0].shape[2]);
    out_ = static_cast<std::size_t>(output_.shape[2]);
    dim_ = out_ / heads_;
    scale_ = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim_)));
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

  Status forward(const ForwardPass& pass) override {
    return each_head([&](const Head& head, float* scratch) {
      const float* const in = pass.input();
      bool done = true;
      for (std::size_t begin = 0; begin < tokens_; begin += kRows) {
        const Block block = block_at(begin);
        float* const scores = scratch;
        float* const factors = scratch + 2 * kRows * tokens_;
        float* const out = pass.output + head.out + begin * out_;
        done = done && compute_scores(head, begin, block, in, scores);
        exponentiate(block, scores, log_sums_.data() + head.log_sums + begin, factors);
        done = done && product(block.rows, dim_, block.keys, {scores, stride(tokens_)},
                               {in + head.value, stride(in_)}, 0.0f, out, out_);
        scale_rows(block.rows, dim_, factors, out, out_);
      }
      return done;
    });
  }

  Status backward(const BackwardPass& pass) override {
    if (pass.input_gradient() == nullptr) return {};
    return each_head([&](const Head& head, float* scratch) {
      bool done = true;
      // From the last, which has all keys, to the first.
      for (std::size_t begin = (tokens_ - 1) / kRows * kRows;; begin -= kRows) {
        const bool first = head.first_of_keys && begin + kRows >= tokens_;
        done = done && block_backward(pass, head, begin, first ? 0.0f : 1.0f, scratch);
        if (begin == 0) break;
      }
      return done;
    });
  }

private:
  /// Queries of a block.
  static constexpr std::size_t kRows = 64;

  /// Where a head's first token is, in floats.
  struct Head {
    std::size_t query, key, value;  ///< of the input
    std::size_t out;                ///< of the output
    std::size_t log_sums;
    bool first_of_keys;  ///< of those that share them
  };

  static std::int64_t stride(std::size_t floats) { return static_cast<std::int64_t>(floats); }
  static bool product(std::size_t m, std::size_t n, std::size_t k, const Matrix& a, const Matrix& b,
                      float beta, float* to, std::size_t to_stride) {
    return gemm(stride(m), stride(n), stride(k), 1.0f, a, b, beta, to, stride(to_stride));
  }

  /// Two blocks of scores, and a number for each row.
  std::size_t part_floats() const { return kRows * (2 * tokens_ + 16); }

  Block block_at(std::size_t begin) const {
    const std::size_t rows = std::min(kRows, tokens_ - begin);
    return {rows, causal_ ? begin + rows : tokens_, tokens_, causal_ ? begin + 1 : tokens_,
            causal_ ? std::size_t{1} : 0};
  }

  bool compute_scores(const Head& head, std::size_t begin, const Block& block, const float* in,
                      float* scores) const {
    return gemm(stride(block.rows), stride(block.keys), stride(dim_), scale_,
                {in + head.query + begin * in_, stride(in_)},
                {in + head.key, stride(in_), /*transposed=*/true}, 0.0f, scores, stride(tokens_));
  }

  bool block_backward(const BackwardPass& pass, const Head& head, std::size_t begin, float beta,
                      float* scratch) const {
    const Block block = block_at(begin);
    const float* const in = pass.input();
    float* const to = pass.input_gradient();
    float* const p = scratch;
    float* const dp = scratch + kRows * tokens_;
    const Matrix given{pass.output_gradient + head.out + begin * out_, stride(out_)};
    if (!compute_scores(head, begin, block, in, p)) return false;
    probabilities(block, p, log_sums_.data() + head.log_sums + begin);
    if (!product(block.keys, dim_, block.rows, {p, stride(tokens_), /*transposed=*/true}, given,
                 beta, to + head.value, in_) ||
        !product(block.rows, block.keys, dim_, given,
                 {in + head.value, stride(in_), /*transposed=*/true}, 0.0f, dp, tokens_))
      return false;
    softmax_backward(block, p, dp, scale_);
    return product(block.rows, dim_, block.keys, {dp, stride(tokens_)},
                   {in + head.key, stride(in_)}, 0.0f, to + head.query + begin * in_, in_) &&
           product(block.keys, dim_, block.rows, {dp, stride(tokens_), /*transposed=*/true},
                   {in + head.query + begin * in_, stride(in_)}, beta, to + head.key, in_);
  }

  /// `body(head, scratch)`, false if memory ran out.
  template <class Body>
  Status each_head(const Body& body) {
    const OpenMpThreads scope(threads_);
    std::atomic<bool> done{true};
    const std::size_t sharing = heads_ / key_heads_;
    parallel_each(threads_, batch_ * key_heads_, [&](std::size_t item, std::size_t part) {
      const std::size_t sample = item / key_heads_, group = item % key_heads_;
      for (std::size_t i = 0; i < sharing; ++i) {
        const std::size_t head = group * sharing + i;
        const std::size_t first = sample * tokens_ * in_;
        const Head at{first + head * dim_,
                      first + (heads_ + group) * dim_,
                      first + (heads_ + key_heads_ + group) * dim_,
                      sample * tokens_ * out_ + head * dim_,
                      (sample * heads_ + head) * tokens_,
                      i == 0};
        if (!body(at, scratch_.data() + part * part_floats())) done = false;
      }
    });
    if (!done) return {Code::resource_exhausted, "attention: out of memory"};
    return {};
  }

  int threads_;
  std::size_t batch_;
  std::size_t heads_ = 1, key_heads_ = 1;
  bool causal_ = false;
  std::size_t tokens_ = 0, dim_ = 0;
  std::size_t in_ = 0, out_ = 0;  ///< floats of a token
  float scale_ = 1.0f;
  Scratch log_sums_;  ///< of each sample, head and token
  Scratch scratch_;   ///< of each thread
};

}  // namespace

MadeKernel make_attention(const KernelRequest& request) {
  if (request.choice == KernelChoice::portable) return MadeKernel(nullptr);
  return AttentionKernel::make(request);
}

}  // namespace troupe::kernels::cpu
