#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/internal/custom_pass.hpp"

namespace troupe::kernels::cpu {

namespace {

/// A layer of the user's, on plain tensors.
class CustomKernel final : public LayerKernel {
public:
  explicit CustomKernel(const KernelRequest& request)
      : custom_(std::get<Custom>(request.layers[0].spec)),
        batch_(request.batch()),
        threads_(request.threads),
        parameters_(custom_parameters(request)) {
    for (const KernelInput& input : request.inputs)
      inputs_.push_back(plain_activation(input.activation.shape));
    output_ = plain_activation(request.output_shape());
  }

  Status forward(const ForwardPass& pass) override {
    const auto inputs = inputs_of(pass.inputs);
    const auto parameters = parameters_of(pass.parameters);
    return run_forward(custom_,
                       {batch_, inputs, parameters, {pass.output, output_.floats}, threads_});
  }

  Status backward(const BackwardPass& pass) override {
    const auto inputs = inputs_of(pass.inputs);
    const auto parameters = parameters_of(pass.parameters);
    std::vector<std::span<float>> to_parameters, to_inputs;
    for (const CustomParameter& place : parameters_)
      to_parameters.emplace_back(pass.gradients + place.offset, place.elements);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      float* const to = pass.input_gradients[i];
      to_inputs.emplace_back(to, to == nullptr ? 0 : inputs_[i].floats);
    }
    return run_backward(custom_, {batch_,
                                  inputs,
                                  parameters,
                                  {pass.output, output_.floats},
                                  {pass.output_gradient, output_.floats},
                                  to_parameters,
                                  to_inputs,
                                  threads_});
  }

private:
  std::vector<std::span<const float>> inputs_of(std::span<const float* const> given) const {
    std::vector<std::span<const float>> list;
    for (std::size_t i = 0; i < given.size(); ++i) list.emplace_back(given[i], inputs_[i].floats);
    return list;
  }
  std::vector<std::span<const float>> parameters_of(const float* all) const {
    std::vector<std::span<const float>> list;
    for (const CustomParameter& place : parameters_)
      list.emplace_back(all + place.offset, place.elements);
    return list;
  }

  Custom custom_;
  std::int64_t batch_;
  int threads_;
  std::vector<CustomParameter> parameters_;
};

}  // namespace

MadeKernel make_custom(const KernelRequest& request) {
  return MadeKernel(std::make_unique<CustomKernel>(request));
}

}  // namespace troupe::kernels::cpu
