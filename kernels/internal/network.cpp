#include "kernels/internal/network.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::kernels {

namespace {

using Layout = Activation::Layout;

Operation operation_of(const LayerSpec& spec) {
  if (std::holds_alternative<Convolution>(spec)) return Operation::convolution;
  if (std::holds_alternative<Linear>(spec)) return Operation::linear;
  if (std::holds_alternative<Relu>(spec)) return Operation::relu;
  const auto* pooling = std::get_if<Pooling>(&spec);
  TROUPE_CHECK(pooling != nullptr, fmt::format("no operation for {}", describe(spec)));
  return pooling->kind == Pooling::Kind::max ? Operation::max_pooling : Operation::average_pooling;
}

bool is_fusible(std::span<const Layer> run) {
  if (run.size() < 3) return false;
  const auto* pooling = std::get_if<Pooling>(&run[2].spec);
  return std::holds_alternative<Convolution>(run[0].spec) &&
         std::holds_alternative<Relu>(run[1].spec) && pooling != nullptr &&
         pooling->kind == Pooling::Kind::max;
}

Result<Buffer> zeroed(std::size_t count) {
  TROUPE_ASSIGN(Buffer buffer, Buffer::allocate(std::max<std::size_t>(count, 1) * sizeof(float)));
  std::memset(buffer.data(), 0, buffer.size());
  return buffer;
}

}  // namespace

std::span<float> Network::floats(Buffer& buffer) noexcept {
  return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

std::span<const float> Network::floats(const Buffer& buffer) noexcept {
  return {reinterpret_cast<const float*>(buffer.data()), buffer.size() / sizeof(float)};
}

Result<Network> Network::create(const Model& model, std::int64_t batch,
                                const NetworkOptions& options) {
  Network network(model);
  network.current_ = plain_activation(model.input().with_first(batch));
  network.any_gradient_ = options.input_gradient;
  TROUPE_ASSIGN(Buffer input, zeroed(network.current_.floats));
  network.buffers_.push_back(std::move(input));
  TROUPE_TRY(network.add_layers(options));
  TROUPE_TRY(network.allocate_gradients());
  return network;
}

Status Network::add_layers(const NetworkOptions& options) {
  const std::int64_t batch = current_.shape[0];
  std::size_t index = 0;
  while (index < model_.layers().size()) {
    const Layer& layer = model_.layers()[index];
    if (std::holds_alternative<Flatten>(layer.spec)) {
      // Only a matter of names, unless the channels are blocked.
      if (current_.layout == Layout::blocked)
        TROUPE_TRY(add_reorder(plain_activation(current_.shape), options));
      current_.shape = layer.output.with_first(batch);
      ++index;
      continue;
    }
    TROUPE_ASSIGN(const std::size_t used, add_layer(index, options));
    index += used;
  }
  return add_reorder(plain_activation(current_.shape), options);
}

/// Adds the kernel for the layer at `index`, or for a run that starts there; gives how many.
Result<std::size_t> Network::add_layer(std::size_t index, const NetworkOptions& options) {
  const auto rest = model_.layers().subspan(index);
  const auto make = [&](Operation operation, std::size_t count) -> MadeKernel {
    const KernelMaker maker = find_kernel({operation, DType::f32, options.device});
    if (maker == nullptr) return MadeKernel(nullptr);
    return maker(
        {model_, rest.first(count), current_, any_gradient_, options.choice, options.threads});
  };
  std::unique_ptr<LayerKernel> kernel;
  std::size_t used = 3;
  if (is_fusible(rest)) {
    TROUPE_ASSIGN(kernel, make(Operation::convolution_relu_max_pooling, used));
  }
  if (kernel == nullptr) {
    used = 1;
    TROUPE_ASSIGN(kernel, make(operation_of(rest[0].spec), used));
  }
  if (kernel == nullptr)
    return Error{Code::not_supported,
                 fmt::format("{}: no kernel for f32 on device {}", describe(rest[0].spec),
                             to_string(options.device))};
  TROUPE_TRY(add_reorder(kernel->input(), options));
  TROUPE_TRY(add_step(std::move(kernel), rest.first(used)));
  return used;
}

Status Network::add_reorder(const Activation& to, const NetworkOptions& options) {
  // Between two layouts of which neither is plain, in two steps.
  if (current_.layout != Layout::plain && to.layout != Layout::plain &&
      current_.layout != to.layout)
    TROUPE_TRY(add_reorder(plain_activation(current_.shape), options));
  TROUPE_ASSIGN(auto kernel, make_reorder(options.device, current_, to, options.threads));
  return kernel == nullptr ? Status{} : add_step(std::move(kernel), {});
}

Status Network::add_step(std::unique_ptr<LayerKernel> kernel, std::span<const Layer> layers) {
  Step step{std::move(kernel), {}, any_gradient_};
  for (const Layer& layer : layers) {
    if (layer.bias) step.parameters.push_back(*layer.bias);
    if (layer.weight) step.parameters.push_back(*layer.weight);
  }
  any_gradient_ = any_gradient_ || !step.parameters.empty();
  current_ = step.kernel->output();
  TROUPE_ASSIGN(Buffer output, zeroed(current_.floats));
  buffers_.push_back(std::move(output));
  steps_.push_back(std::move(step));
  return {};
}

Status Network::allocate_gradients() {
  std::size_t most = 0;
  for (const Buffer& buffer : buffers_) most = std::max(most, floats(buffer).size());
  for (Buffer& buffer : gradients_) {
    TROUPE_ASSIGN(buffer, zeroed(most));
  }
  return {};
}

bool Network::uses_library() const noexcept {
  return std::ranges::any_of(steps_, [](const Step& x) { return x.kernel->uses_library(); });
}

Status Network::forward(std::span<const float> parameters) {
  for (std::size_t i = 0; i < steps_.size(); ++i)
    TROUPE_TRY(steps_[i].kernel->forward({.input = floats(buffers_[i]).data(),
                                          .parameters = parameters.data(),
                                          .output = floats(buffers_[i + 1]).data()}));
  return {};
}

std::span<float> Network::output_gradient() noexcept {
  return floats(gradients_[steps_.size() % 2]).first(output().size());
}

std::span<const float> Network::input_gradient() const noexcept {
  return floats(gradients_[0]).first(floats(buffers_[0]).size());
}

Status Network::backward(std::span<const float> parameters, std::span<float> gradients,
                         const GradientReady& ready) {
  for (std::size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    // Before the first layer with parameters there is nothing to do.
    if (!step.input_gradient && step.parameters.empty()) break;
    TROUPE_TRY(step.kernel->backward(
        {.input = floats(buffers_[i]).data(),
         .output = floats(buffers_[i + 1]).data(),
         .output_gradient = floats(gradients_[(i + 1) % 2]).data(),
         .parameters = parameters.data(),
         .gradients = gradients.data(),
         .input_gradient = step.input_gradient ? floats(gradients_[i % 2]).data() : nullptr}));
    if (!ready) continue;
    for (std::size_t index : step.parameters) ready(model_.parameters()[index]);
  }
  return {};
}

}  // namespace troupe::kernels
