#include <cstddef>
#include <vector>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"

namespace troupe::kernels::cuda {

namespace {

class ConcatKernel final : public CudaKernel {
public:
  ConcatKernel(Context& context, const KernelRequest& request) : CudaKernel(context, request) {
    const auto axis = static_cast<std::size_t>(std::get<Concat>(request.layers[0].spec).axis) + 1;
    std::size_t outer = 1;  // of the axes before the one that is put together
    for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(output_.shape[i]);
    for (const Activation& input : inputs_) {
      runs_.push_back(input.floats / outer);
      whole_ += runs_.back();
    }
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

private:
  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    float* to = pass.output;
    for (std::size_t i = 0; i < runs_.size(); to += runs_[i++])
      TROUPE_TRY(for_each(stream.handle(), inputs_[i].floats,
                          CopyRuns{pass.inputs[i], runs_[i], to, whole_, runs_[i]}));
    return {};
  }
  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    const float* from = pass.output_gradient;
    for (std::size_t i = 0; i < runs_.size(); from += runs_[i++])
      if (float* const to = pass.input_gradients[i]; to != nullptr)
        TROUPE_TRY(for_each(stream.handle(), inputs_[i].floats,
                            CopyRuns{from, whole_, to, runs_[i], runs_[i]}));
    return {};
  }

  std::vector<std::size_t> runs_;  ///< floats of each input for one of the outer axes' places
  std::size_t whole_ = 0;          ///< and of the output
};

}  // namespace

MadeKernel make_concat(Context& context, const KernelRequest& request) {
  return MadeKernel(std::make_unique<ConcatKernel>(context, request));
}

}  // namespace troupe::kernels::cuda
