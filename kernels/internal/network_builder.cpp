// How a network is made of a model: which kernels, for which runs of layers, and the reorders
// between them.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "kernels/internal/network.hpp"

namespace troupe::kernels {

namespace {

using Layout = Activation::Layout;

struct OperationOf {
  Mode mode;
  Operation operator()(const Convolution&) const { return Operation::convolution; }
  Operation operator()(const Linear&) const { return Operation::linear; }
  Operation operator()(const BatchNorm& spec) const {
    return spec.synchronized && mode == Mode::training ? Operation::synchronized_batch_norm
                                                       : Operation::batch_norm;
  }
  Operation operator()(const Relu&) const { return Operation::relu; }
  Operation operator()(const Pooling& spec) const {
    return spec.kind == Pooling::Kind::max ? Operation::max_pooling : Operation::average_pooling;
  }
  Operation operator()(const AdaptivePooling&) const { return Operation::adaptive_pooling; }
  Operation operator()(const GlobalAveragePooling&) const { return Operation::average_pooling; }
  Operation operator()(const Flatten&) const { return Operation::alias; }
  Operation operator()(const Reshape&) const { return Operation::alias; }
  Operation operator()(const Add&) const { return Operation::add; }
  Operation operator()(const Embedding&) const { return Operation::embedding; }
  Operation operator()(const PositionEmbedding&) const { return Operation::position_embedding; }
  Operation operator()(const LayerNorm&) const { return Operation::layer_norm; }
  Operation operator()(const RmsNorm&) const { return Operation::rms_norm; }
  Operation operator()(const GroupNorm&) const { return Operation::group_norm; }
  Operation operator()(const Gelu&) const { return Operation::gelu; }
  Operation operator()(const Silu&) const { return Operation::silu; }
  Operation operator()(const Sigmoid&) const { return Operation::sigmoid; }
  Operation operator()(const Tanh&) const { return Operation::tanh; }
  Operation operator()(const Concat&) const { return Operation::concat; }
  Operation operator()(const Dropout&) const { return Operation::dropout; }
  Operation operator()(const Attention&) const { return Operation::attention; }
  Operation operator()(const Lstm&) const { return Operation::lstm; }
  Operation operator()(const Custom&) const { return Operation::custom; }
};

Operation operation_of(const Layer& layer, Mode mode) {
  return std::visit(OperationOf{mode}, layer.spec);
}

/// Layers one after the other that one kernel may compute; the longest are tried first.
struct Fusion {
  Operation fused;
  std::array<Operation, 4> layers;
  std::size_t count;
};
constexpr Fusion kFusions[] = {
    {Operation::convolution_relu_max_pooling,
     {Operation::convolution, Operation::relu, Operation::max_pooling},
     3},
    {Operation::convolution_batch_norm_add_relu,
     {Operation::convolution, Operation::batch_norm, Operation::add, Operation::relu},
     4},
    {Operation::convolution_batch_norm_relu,
     {Operation::convolution, Operation::batch_norm, Operation::relu},
     3},
    {Operation::convolution_batch_norm, {Operation::convolution, Operation::batch_norm}, 2},
    {Operation::convolution_relu, {Operation::convolution, Operation::relu}, 2},
    {Operation::linear_gelu, {Operation::linear, Operation::gelu}, 2},
    {Operation::batch_norm_relu, {Operation::batch_norm, Operation::relu}, 2},
    {Operation::synchronized_batch_norm_relu,
     {Operation::synchronized_batch_norm, Operation::relu},
     2},
    {Operation::add_relu, {Operation::add, Operation::relu}, 2},
};

/// The same elements under another shape.
class Alias final : public LayerKernel {
public:
  Alias(const Activation& input, const Shape& output) {
    inputs_ = {input};
    output_ = input;
    output_.shape = output;
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false,
            .backward_reads_output = false,
            .passes_gradient = true,
            .alias = true};
  }
  Status forward(const ForwardPass&) override { return {}; }
  Status backward(const BackwardPass&) override { return {}; }
};

}  // namespace

/// Adds steps, and reorders between them.
struct Network::Builder {
  Network& network;
  const NetworkOptions& options;
  std::int64_t batch;
  std::vector<std::size_t> consumers;  ///< of each of the model's values
  std::vector<std::size_t> value_of;   ///< the model's value -> ours
  std::vector<bool> has_step = std::vector<bool>(network.model_.parameters().size());
  /// Values that were reordered before, by the layout that was wanted.
  std::vector<std::pair<std::size_t, std::size_t>> reordered = {};

  Builder(Network& the_network, const NetworkOptions& the_options, std::int64_t the_batch)
      : network(the_network), options(the_options), batch(the_batch) {
    const auto layers = network.model_.layers();
    consumers.resize(layers.size() + 1);
    value_of.resize(layers.size() + 1);
    for (const Layer& layer : layers)
      for (const std::size_t value : layer.from) ++consumers[value];
  }

  bool matches(const Fusion& fusion, std::size_t index) const {
    const auto layers = network.model_.layers();
    if (index + fusion.count > layers.size()) return false;
    for (std::size_t i = 0; i < fusion.count; ++i) {
      if (operation_of(layers[index + i], options.mode) != fusion.layers[i]) return false;
      if (i == 0) continue;
      // What is between two of them belongs to nobody else. Only a sum takes something besides.
      const auto& from = layers[index + i].from;
      if (std::ranges::count(from, index + i) != 1 || consumers[index + i] != 1 ||
          (from.size() != 1 && fusion.layers[i] != Operation::add))
        return false;
    }
    return true;
  }

  /// The model's values that a run of layers takes: the first one's, and then what comes besides.
  std::vector<std::size_t> inputs_of(std::span<const Layer> layers) const {
    const auto index = static_cast<std::size_t>(layers.data() - network.model_.layers().data());
    std::vector<std::size_t> inputs = layers[0].from;
    for (const Layer& layer : layers.subspan(1))
      for (const std::size_t value : layer.from)
        if (value <= index) inputs.push_back(value);
    return inputs;
  }

  MadeKernel make(Operation operation, std::span<const Layer> layers,
                  DType dtype = DType::f32) const {
    std::vector<KernelInput> inputs;
    for (const std::size_t value : inputs_of(layers)) {
      const Value& ours = network.values_[value_of[value]];
      inputs.push_back({ours.activation, ours.wants_gradient});
    }
    if (operation == Operation::alias) {
      // Only a matter of names, unless the channels are blocked.
      const Activation& input = inputs[0].activation;
      return MadeKernel(std::make_unique<Alias>(
          input.layout == Layout::blocked ? plain_activation(input.shape) : input,
          layers[0].output.with_first(batch)));
    }
    return network.backend().make_kernel(operation, dtype,
                                         {network.model_, layers, inputs, options.mode,
                                          options.choice, options.threads, *network.scratch_});
  }

  /// Adds the kernel for the layer at `index`, or for a run that starts there; gives how many.
  Result<std::size_t> add_layer(std::size_t index) {
    const auto rest = network.model_.layers().subspan(index);
    std::unique_ptr<LayerKernel> kernel;
    std::size_t used = 1;
    if (options.precision != DType::f32) {
      TROUPE_ASSIGN(kernel,
                    make(operation_of(rest[0], options.mode), rest.first(1), options.precision));
    }
    for (const Fusion& fusion : kFusions) {
      if (kernel != nullptr || !matches(fusion, index)) continue;
      used = fusion.count;
      TROUPE_ASSIGN(kernel, make(fusion.fused, rest.first(used)));
    }
    if (kernel == nullptr) {
      used = 1;
      TROUPE_ASSIGN(kernel, make(operation_of(rest[0], options.mode), rest.first(1)));
    }
    if (kernel == nullptr)
      return Error{Code::not_supported,
                   fmt::format("{}: no kernel for f32 on device {}{}", describe(rest[0].spec),
                               to_string(options.device.name()),
                               options.choice == KernelChoice::portable
                                   ? " among the portable ones; let the library compute it"
                                   : "")};
    std::vector<std::size_t> inputs;
    const std::vector<std::size_t> taken = inputs_of(rest.first(used));
    for (std::size_t i = 0; i < taken.size(); ++i) {
      TROUPE_ASSIGN(const std::size_t value, reorder(value_of[taken[i]], kernel->inputs()[i]));
      inputs.push_back(value);
    }
    value_of[index + used] = add_step(std::move(kernel), std::move(inputs), rest.first(used));
    return used;
  }

  /// The value in the layout of `to`.
  Result<std::size_t> reorder(std::size_t value, const Activation& to) {
    const auto lies = [&](std::size_t x) {
      return lie_alike(network.backend(), network.values_[x].activation, to);
    };
    if (lies(value)) return value;
    for (const auto& [from, made] : reordered)
      if (from == value && lies(made)) return made;
    const Activation from = network.values_[value].activation;
    // Between two layouts of which neither is plain, in two steps.
    if (from.layout != Layout::plain && to.layout != Layout::plain && from.layout != to.layout) {
      TROUPE_ASSIGN(const std::size_t plain, reorder(value, plain_activation(from.shape)));
      return reorder(plain, to);
    }
    TROUPE_ASSIGN(auto kernel,
                  network.backend().make_reorder(from, to, options.threads, *network.scratch_));
    const std::size_t made = add_step(std::move(kernel), {value}, {});
    reordered.emplace_back(value, made);
    return made;
  }

  std::size_t add_step(std::unique_ptr<LayerKernel> kernel, std::vector<std::size_t> inputs,
                       std::span<const Layer> layers) {
    Step step;
    for (const Layer& layer : layers)
      for (const std::size_t index : layer.parameters) {
        if (network.model_.parameters()[index].kind != ParameterKind::trained) continue;
        step.trained = true;
        // Of a parameter that earlier layers have too, theirs is added later.
        if (!has_step[index]) step.completes.push_back(index);
        has_step[index] = true;
      }
    std::ranges::sort(step.completes, std::greater<>());
    Value value{kernel->output(), step.trained, 0, {}};
    for (const std::size_t input : inputs)
      value.wants_gradient = value.wants_gradient || network.values_[input].wants_gradient;
    step.kernel = std::move(kernel);
    step.inputs = std::move(inputs);
    step.output = network.values_.size();
    network.values_.push_back(std::move(value));
    network.steps_.push_back(std::move(step));
    return network.values_.size() - 1;
  }
};

Result<Network> Network::create(const Model& model, std::int64_t batch,
                                const NetworkOptions& options) {
  Network network(model, options);
  if (options.stream == nullptr) {
    TROUPE_ASSIGN(network.own_stream_, network.backend().make_stream());
    network.options_.stream = network.own_stream_.get();
  }
  network.values_.push_back(
      {plain_activation(model.input().with_first(batch)), options.input_gradient, 0, {}});
  Builder builder(network, options, batch);
  for (std::size_t index = 0; index < model.layers().size();) {
    TROUPE_ASSIGN(const std::size_t used, builder.add_layer(index));
    index += used;
  }
  const std::size_t last = builder.value_of.back();
  TROUPE_ASSIGN(network.output_,
                builder.reorder(last, plain_activation(network.values_[last].activation.shape)));
  TROUPE_TRY(network.plan());
  return network;
}

}  // namespace troupe::kernels
