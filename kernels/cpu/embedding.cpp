#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/column_sums.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/vector_ops.hpp"

namespace troupe::kernels::cpu {

namespace {

/// Floats that are not worth a thread.
constexpr std::size_t kLeast = 1 << 14;

class EmbeddingKernel final : public LayerKernel {
public:
  explicit EmbeddingKernel(const KernelRequest& request)
      : threads_(request.threads), weight_(request.offset_of(0)), adds_(request.adds_gradient(0)) {
    const auto& spec = std::get<Embedding>(request.layers[0].spec);
    vocabulary_ = static_cast<std::size_t>(spec.vocabulary);
    width_ = static_cast<std::size_t>(spec.width);
    inputs_ = {plain_activation(request.input().shape)};
    output_ = plain_activation(request.output_shape());
  }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

  Status forward(const ForwardPass& pass) override {
    const std::int32_t* const ids = tokens(pass.input());
    const float* const weight = pass.parameters + weight_;
    const std::size_t least = std::max<std::size_t>(1, kLeast / width_);
    parallel_for(threads_, inputs_[0].floats, least, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        std::memcpy(pass.output + i * width_, weight + static_cast<std::size_t>(ids[i]) * width_,
                    width_ * sizeof(float));
    });
    return {};
  }

  /// Threads share the columns, and each goes through the tokens in order: a token that comes often
  /// has its sum in one order.
  Status backward(const BackwardPass& pass) override {
    const std::int32_t* const ids = tokens(pass.input());
    float* const gradient = pass.gradients + weight_;
    if (!adds_)
      parallel_for(threads_, vocabulary_ * width_, kLeast, [&](std::size_t begin, std::size_t end) {
        std::fill(gradient + begin, gradient + end, 0.0f);
      });
    const std::size_t count = inputs_[0].floats;
    const std::size_t least = std::max<std::size_t>(16, kLeast / count);
    parallel_for(threads_, width_, least, [&](std::size_t begin, std::size_t end) {
      const std::size_t n = end - begin;
      for (std::size_t i = 0; i < count; ++i)
        add_in_place({gradient + static_cast<std::size_t>(ids[i]) * width_ + begin, n},
                     {pass.output_gradient + i * width_ + begin, n});
    });
    return {};
  }

private:
  static const std::int32_t* tokens(const float* input) {
    return reinterpret_cast<const std::int32_t*>(input);
  }

  int threads_;
  std::size_t weight_;
  bool adds_;
  std::size_t vocabulary_ = 0, width_ = 0;
};

class PositionEmbeddingKernel final : public LayerKernel {
public:
  explicit PositionEmbeddingKernel(const KernelRequest& request)
      : threads_(request.threads),
        batch_(static_cast<std::size_t>(request.batch())),
        weight_(request.offset_of(0)),
        sample_(static_cast<std::size_t>(request.layers[0].output.elements())) {
    inputs_ = {plain_activation(request.input().shape)};
    output_ = inputs_[0];
    const auto& spec = std::get<PositionEmbedding>(request.layers[0].spec);
    unused_ = static_cast<std::size_t>(spec.context * request.layers[0].output[1]) - sample_;
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false, .in_place = true};
  }

  Status forward(const ForwardPass& pass) override {
    const float* const weight = pass.parameters + weight_;
    parallel_for(threads_, sample_, kLeast, [&](std::size_t begin, std::size_t end) {
      const std::size_t n = end - begin;
      for (std::size_t sample = 0; sample < batch_; ++sample) {
        const std::size_t at = sample * sample_ + begin;
        add({pass.output + at, n}, {pass.input() + at, n}, {weight + begin, n});
      }
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    float* const gradient = pass.gradients + weight_;
    column_sums(pass.output_gradient, batch_, sample_, gradient, /*add=*/false, threads_);
    std::fill(gradient + sample_, gradient + sample_ + unused_, 0.0f);
    float* const to = pass.input_gradient();
    if (to != nullptr && to != pass.output_gradient)
      std::memcpy(to, pass.output_gradient, output_.floats * sizeof(float));
    return {};
  }

private:
  int threads_;
  std::size_t batch_, weight_;
  std::size_t sample_;      ///< floats of one
  std::size_t unused_ = 0;  ///< floats of the positions beyond the tokens
};

}  // namespace

MadeKernel make_embedding(const KernelRequest& request) {
  return MadeKernel(std::make_unique<EmbeddingKernel>(request));
}

MadeKernel make_position_embedding(const KernelRequest& request) {
  return MadeKernel(std::make_unique<PositionEmbeddingKernel>(request));
}

}  // namespace troupe::kernels::cpu
