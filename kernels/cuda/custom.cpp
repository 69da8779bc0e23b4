#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/custom_layer.hpp"
#include "kernels/internal/custom_pass.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels::cuda {

namespace {

/// Floats of the host's pinned memory.
class Staged {
public:
  static Result<Staged> make(Context& context, std::size_t floats) {
    Staged staged;
    if (floats == 0) return staged;
    TROUPE_ASSIGN(staged.buffer_, context.staging().allocate(floats * sizeof(float)));
    staged.floats_ = floats;
    return staged;
  }
  std::span<float> values() noexcept { return {reinterpret_cast<float*>(buffer_.data()), floats_}; }
  Status bring(CudaStream& stream, const float* from) {
    return stream.copy(buffer_.data(), from, floats_ * sizeof(float));
  }
  Status send(CudaStream& stream, float* to) const {
    return stream.copy(to, buffer_.data(), floats_ * sizeof(float));
  }

private:
  Buffer buffer_;
  std::size_t floats_ = 0;
};

/// A layer of the user's own, which computes on the host: what it reads is copied there and waited
/// for, and what it wrote is copied back.
class HostedLayer final : public CudaKernel {
public:
  HostedLayer(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        custom_(std::get<Custom>(request.layers[0].spec)),
        batch_(request.batch()),
        threads_(request.threads),
        training_(request.mode == Mode::training),
        places_(custom_parameters(request)) {
    for (const KernelInput& input : request.inputs) wants_gradient_.push_back(input.gradient);
  }

  Status allocate() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::size_t floats = inputs_[i].floats;
      TROUPE_TRY(add(inputs_here_, floats));
      TROUPE_TRY(add(input_gradients_, training_ && wants_gradient_[i] ? floats : 0));
    }
    for (const CustomParameter& place : places_) {
      TROUPE_TRY(add(parameters_, place.elements));
      TROUPE_TRY(add(parameter_gradients_, training_ ? place.elements : 0));
    }
    TROUPE_ASSIGN(output_here_, Staged::make(context(), output_.floats));
    TROUPE_ASSIGN(output_gradient_, Staged::make(context(), training_ ? output_.floats : 0));
    return {};
  }

  // The backward pass finds both here.
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false, .waits = true};
  }

private:
  Status add(std::vector<Staged>& list, std::size_t floats) {
    TROUPE_ASSIGN(Staged staged, Staged::make(context(), floats));
    list.push_back(std::move(staged));
    return {};
  }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      TROUPE_TRY(inputs_here_[i].bring(stream, pass.inputs[i]));
    for (std::size_t i = 0; i < places_.size(); ++i)
      TROUPE_TRY(parameters_[i].bring(stream, pass.parameters + places_[i].offset));
    TROUPE_TRY(stream.synchronize());
    const auto inputs = read(inputs_here_), parameters = read(parameters_);
    TROUPE_TRY(run_forward(custom_, {batch_, inputs, parameters, output_here_.values(), threads_}));
    return output_here_.send(stream, pass.output);
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    TROUPE_TRY(output_gradient_.bring(stream, pass.output_gradient));
    TROUPE_TRY(stream.synchronize());
    const auto inputs = read(inputs_here_), parameters = read(parameters_);
    const auto parameter_gradients = written(parameter_gradients_),
               input_gradients = written(input_gradients_);
    TROUPE_TRY(run_backward(
        custom_, {batch_, inputs, parameters, output_here_.values(), output_gradient_.values(),
                  parameter_gradients, input_gradients, threads_}));
    for (std::size_t i = 0; i < places_.size(); ++i)
      TROUPE_TRY(parameter_gradients_[i].send(stream, pass.gradients + places_[i].offset));
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (pass.input_gradients[i] != nullptr)
        TROUPE_TRY(input_gradients_[i].send(stream, pass.input_gradients[i]));
    return {};
  }

  static std::vector<std::span<const float>> read(std::vector<Staged>& list) {
    std::vector<std::span<const float>> spans;
    for (Staged& staged : list) spans.emplace_back(staged.values());
    return spans;
  }
  static std::vector<std::span<float>> written(std::vector<Staged>& list) {
    std::vector<std::span<float>> spans;
    for (Staged& staged : list) spans.push_back(staged.values());
    return spans;
  }

  const Custom custom_;
  const std::int64_t batch_;
  const int threads_;
  const bool training_;
  const std::vector<CustomParameter> places_;  ///< of its parameters
  std::vector<bool> wants_gradient_;
  std::vector<Staged> inputs_here_, input_gradients_, parameters_, parameter_gradients_;
  Staged output_here_, output_gradient_;
};

}  // namespace

MadeKernel make_custom(Context& context, const KernelRequest& request) {
  auto kernel = std::make_unique<HostedLayer>(context, request);
  TROUPE_TRY(kernel->allocate());
  return MadeKernel(std::move(kernel));
}

}  // namespace troupe::kernels::cuda
