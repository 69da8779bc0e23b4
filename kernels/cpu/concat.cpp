#include <cstddef>
#include <cstring>

#include "kernels/cpu/internal/backend.hpp"

namespace troupe::kernels::cpu {

namespace {

class ConcatKernel final : public LayerKernel {
public:
  explicit ConcatKernel(const KernelRequest& request) {
    const auto axis = static_cast<std::size_t>(std::get<Concat>(request.layers[0].spec).axis) + 1;
    output_ = plain_activation(request.output_shape());
    for (std::size_t i = 0; i < axis; ++i) outer_ *= static_cast<std::size_t>(output_.shape[i]);
    for (const KernelInput& input : request.inputs) {
      inputs_.push_back(plain_activation(input.activation.shape));
      runs_.push_back(inputs_.back().floats / outer_);
    }
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }
  Status forward(const ForwardPass& pass) override {
    float* to = pass.output;
    for (std::size_t outer = 0; outer < outer_; ++outer)
      for (std::size_t i = 0; i < runs_.size(); to += runs_[i++])
        std::memcpy(to, pass.inputs[i] + outer * runs_[i], runs_[i] * sizeof(float));
    return {};
  }
  Status backward(const BackwardPass& pass) override {
    const float* from = pass.output_gradient;
    for (std::size_t outer = 0; outer < outer_; ++outer)
      for (std::size_t i = 0; i < runs_.size(); from += runs_[i++])
        if (float* const to = pass.input_gradients[i]; to != nullptr)
          std::memcpy(to + outer * runs_[i], from, runs_[i] * sizeof(float));
    return {};
  }

private:
  std::size_t outer_ = 1;          ///< of the axes before the one that is put together
  std::vector<std::size_t> runs_;  ///< floats of each input for one of those
};

}  // namespace

MadeKernel make_concat(const KernelRequest& request) {
  return MadeKernel(std::make_unique<ConcatKernel>(request));
}

}  // namespace troupe::kernels::cpu
