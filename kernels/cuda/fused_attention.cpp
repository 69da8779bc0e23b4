#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/cuda/internal/attention_graph.hpp"
#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/rounding.hpp"

namespace troupe::kernels::cuda {

namespace {

/// Attention in one kernel of cuDNN's for each pass, on inputs that are rounded to 16 bits; it
/// rounds the probabilities too, and what it gives, which is brought back to f32.
class FusedAttentionKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request, DType type) {
    auto kernel = std::make_unique<FusedAttentionKernel>(context, request, type);
    TROUPE_TRY(kernel->plan(request.mode));
    TROUPE_ASSIGN(kernel->log_sums_, context.allocate(kernel->rows() * sizeof(float)));
    return MadeKernel(std::move(kernel));
  }

  FusedAttentionKernel(Context& context, const KernelRequest& request, DType type)
      : CudaKernel(context, request), type_(type), scratch_(request.scratch) {
    const auto& spec = std::get<Attention>(request.layers[0].spec);
    const std::int64_t dim = output_.shape[2] / spec.heads;
    sizes_ = {request.batch(), spec.heads, spec.key_heads(), output_.shape[1], dim, spec.causal};
    scale_ = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
    input_ = RoundedFactor(type, inputs_[0].floats, scratch_);
    output_place_ = scratch_.add(output_.floats * size_of(type));
    if (request.mode == Mode::inference) return;
    rounded_output_ = RoundedFactor(type, output_.floats, scratch_);
    output_gradient_ = RoundedFactor(type, output_.floats, scratch_);
    input_gradient_place_ = scratch_.add(inputs_[0].floats * size_of(type));
    row_sums_ = scratch_.add(rows() * sizeof(float));
  }

  bool uses_library() const noexcept override { return true; }

private:
  std::size_t rows() const {
    return static_cast<std::size_t>(sizes_.batch * sizes_.heads * sizes_.tokens);
  }
  /// Bytes from the first query to the first key, and to the first value.
  std::size_t keys() const {
    return static_cast<std::size_t>(sizes_.heads * sizes_.dim) * size_of(type_);
  }
  std::size_t values() const {
    return keys() + static_cast<std::size_t>(sizes_.key_heads * sizes_.dim) * size_of(type_);
  }

  Status plan(Mode mode) {
    TROUPE_ASSIGN(Graph forward, attention_forward_graph(sizes_, type_));
    TROUPE_ASSIGN(forward_, GraphPlan::make(context(), std::move(forward), scratch_));
    if (mode == Mode::inference) return {};
    TROUPE_ASSIGN(Graph backward, attention_backward_graph(sizes_, type_));
    TROUPE_ASSIGN(backward_, GraphPlan::make(context(), std::move(backward), scratch_));
    return {};
  }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    TROUPE_ASSIGN(std::byte* const in, round(input_, stream, pass.input()));
    std::byte* const out = scratch_.at(output_place_);
    TROUPE_TRY(forward_.enqueue(context(), stream.handle(), scratch_,
                                {{kQueries, in},
                                 {kKeys, in + keys()},
                                 {kValues, in + values()},
                                 {kOutput, out},
                                 {kLogSums, log_sums_.data()},
                                 {kScale, &scale_},
                                 {kMasked, &masked_}}));
    return widen(stream.handle(), type_, out, output_.floats, pass.output);
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (pass.input_gradient() == nullptr) return {};
    TROUPE_ASSIGN(std::byte* const in, round(input_, stream, pass.input()));
    // What it gave had 16 bits: nothing is lost.
    TROUPE_ASSIGN(std::byte* const out, round(rounded_output_, stream, pass.output));
    TROUPE_ASSIGN(std::byte* const given, round(output_gradient_, stream, pass.output_gradient));
    std::byte* const to = scratch_.at(input_gradient_place_);
    TROUPE_TRY(backward_.enqueue(context(), stream.handle(), scratch_,
                                 {{kQueries, in},
                                  {kKeys, in + keys()},
                                  {kValues, in + values()},
                                  {kOutput, out},
                                  {kLogSums, log_sums_.data()},
                                  {kOutputGradient, given},
                                  {kQueryGradient, to},
                                  {kKeyGradient, to + keys()},
                                  {kValueGradient, to + values()},
                                  {kRowSums, scratch_.at(row_sums_)},
                                  {kScale, &scale_},
                                  {kMasked, &masked_},
                                  {kOne, &one_}}));
    return widen(stream.handle(), type_, to, inputs_[0].floats, pass.input_gradient());
  }

  Result<std::byte*> round(const RoundedFactor& factor, CudaStream& stream, const float* from) {
    TROUPE_ASSIGN(const void* const at, factor.enqueue(stream.handle(), scratch_, from));
    return static_cast<std::byte*>(const_cast<void*>(at));
  }

  DType type_;
  AttentionSizes sizes_{};
  float scale_ = 1.0f, masked_ = std::numeric_limits<float>::lowest(), one_ = 1.0f;
  ScratchPlaces scratch_;
  RoundedFactor input_, rounded_output_, output_gradient_;
  std::size_t output_place_ = 0, input_gradient_place_ = 0, row_sums_ = 0;  ///< in the scratch
  GraphPlan forward_, backward_;
  Buffer log_sums_;  ///< of each sample, head and token
};

}  // namespace

MadeKernel make_fused_attention(Context& context, const KernelRequest& request, DType factors) {
  // By cudnn-frontend the form of the backward graph makes it deterministic on Ampere to Hopper; on
  // newer cards that takes particular engines, and cuDNN's notes do not tell them from others.
  constexpr int kBlackwell = 10;
  if (context.compute_capability() >= kBlackwell) return MadeKernel(nullptr);
  MadeKernel made = FusedAttentionKernel::make(context, request, factors);
  // It is then computed in f32.
  if (made.code() == Code::not_supported) return MadeKernel(nullptr);
  return made;
}

}  // namespace troupe::kernels::cuda
