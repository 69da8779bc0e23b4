#include <cstddef>
#include <cstdint>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/column_sums.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/embedding_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {

/// The gradient goes through each id's tokens in their order, so that a token that comes often has
/// its sum in one order, that of the CPU.
class EmbeddingKernel final : public CudaKernel {
public:
  EmbeddingKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        weight_(request.offset_of(0)),
        adds_(request.adds_gradient(0)),
        scratch_(request.scratch) {
    const auto& spec = std::get<Embedding>(request.layers[0].spec);
    vocabulary_ = static_cast<std::size_t>(spec.vocabulary);
    width_ = static_cast<std::size_t>(spec.width);
    next_ = scratch_.add(inputs_[0].floats * sizeof(std::int32_t));
    first_ = scratch_.add(inputs_[0].floats);
  }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each(
        stream.handle(), output_.floats,
        EmbeddingForward{ids(pass.input()), pass.parameters + weight_, pass.output, width_});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    float* const gradient = pass.gradients + weight_;
    if (!adds_) TROUPE_TRY(stream.zero(gradient, vocabulary_ * width_ * sizeof(float)));
    auto* const next = reinterpret_cast<std::int32_t*>(scratch_.at(next_));
    auto* const first = reinterpret_cast<std::uint8_t*>(scratch_.at(first_));
    const auto count = static_cast<std::int32_t>(inputs_[0].floats);
    TROUPE_TRY(for_each(stream.handle(), inputs_[0].floats,
                        TokenChains{ids(pass.input()), count, next, first}));
    return for_each(stream.handle(), output_.floats,
                    EmbeddingBackward{ids(pass.input()), next, first, count, pass.output_gradient,
                                      gradient, width_});
  }

  static const std::int32_t* ids(const float* input) {
    return reinterpret_cast<const std::int32_t*>(input);
  }

  std::size_t weight_;
  bool adds_;
  ScratchPlaces scratch_;
  std::size_t vocabulary_ = 0, width_ = 0;
  std::size_t next_ = 0, first_ = 0;  ///< in the scratch
};

class PositionEmbeddingKernel final : public CudaKernel {
public:
  PositionEmbeddingKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        weight_(request.offset_of(0)),
        sample_(static_cast<std::size_t>(request.layers[0].output.elements())),
        scratch_(request.scratch),
        sums_(static_cast<std::size_t>(request.batch()), sample_, scratch_) {
    const auto& spec = std::get<PositionEmbedding>(request.layers[0].spec);
    unused_ = static_cast<std::size_t>(spec.context * request.layers[0].output[1]) - sample_;
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false, .in_place = true};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    return for_each(stream.handle(), output_.floats,
                    PositionForward{pass.input(), pass.parameters + weight_, pass.output, sample_});
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    float* const gradient = pass.gradients + weight_;
    TROUPE_TRY(sums_.enqueue(stream.handle(), scratch_, pass.output_gradient, gradient));
    TROUPE_TRY(stream.zero(gradient + sample_, unused_ * sizeof(float)));
    if (pass.input_gradient() == nullptr) return {};
    return stream.copy(pass.input_gradient(), pass.output_gradient, output_.floats * sizeof(float));
  }

  std::size_t weight_;
  std::size_t sample_;  ///< floats of one
  ScratchPlaces scratch_;
  ColumnSums sums_;
  std::size_t unused_ = 0;  ///< floats of the positions beyond the tokens
};

}  // namespace

MadeKernel make_embedding(Context& context, const KernelRequest& request) {
  return MadeKernel(std::make_unique<EmbeddingKernel>(context, request));
}

MadeKernel make_position_embedding(Context& context, const KernelRequest& request) {
  return MadeKernel(std::make_unique<PositionEmbeddingKernel>(context, request));
}

}  // namespace troupe::kernels::cuda
