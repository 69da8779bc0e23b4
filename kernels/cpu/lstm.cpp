#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/cpu/internal/column_sums.hpp"
#include "kernels/cpu/internal/dnnl_support.hpp"
#include "kernels/cpu/internal/gemm.hpp"
#include "kernels/cpu/internal/lstm_step.hpp"
#include "kernels/cpu/internal/portable.hpp"

// Products of matrices by the library and the gates by loops of our own, rather than the library's
// LSTM: that keeps a workspace of its own between the passes, takes the weights transposed and the
// two biases as one, and its gates' sigmoid and tanh depend on the CPU.

namespace troupe::kernels::cpu {

namespace {

/// Inside, time comes before the batch: a step is then a run of rows, and what goes from each step
/// to the next (the weight's gradient) one product over all steps.
class LstmKernel final : public LayerKernel {
public:
  static MadeKernel make(const KernelRequest& request) {
    auto kernel = std::make_unique<LstmKernel>(request);
    TROUPE_TRY(kernel->allocate(request));
    return MadeKernel(std::move(kernel));
  }

  explicit LstmKernel(const KernelRequest& request)
      : name_(describe(request.layers[0].spec)),
        threads_(request.threads),
        training_(request.mode == Mode::training),
        scratch_(request.scratch) {
    const auto& spec = std::get<Lstm>(request.layers[0].spec);
    inputs_ = {plain_activation(request.input().shape)};
    output_ = plain_activation(request.output_shape());
    sequence_ = spec.sequence;
    batch_ = request.batch();
    steps_ = request.layers[0].input()[0];
    features_ = request.layers[0].input()[1];
    hidden_ = spec.hidden;
    layers_.resize(static_cast<std::size_t>(spec.layers));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      layers_[i].in = i == 0 ? features_ : hidden_;
      layers_[i].weight_ih = request.offset_of(4 * i);
      layers_[i].weight_hh = request.offset_of(4 * i + 1);
      layers_[i].bias_ih = request.offset_of(4 * i + 2);
      layers_[i].bias_hh = request.offset_of(4 * i + 3);
    }
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

  Status forward(const ForwardPass& pass) override {
    const OpenMpThreads scope(threads_);
    swap_axes(pass.input(), x_.data(), batch_, steps_, features_);
    const float* in = x_.data();
    for (Memory& layer : layers_) {
      if (!layer_forward(layer, in, pass.parameters)) return out_of_memory();
      in = layer.hidden.data();
    }
    if (sequence_)
      swap_axes(in, pass.output, steps_, batch_, hidden_);
    else
      std::memcpy(pass.output, in + (steps_ - 1) * batch_ * hidden_,
                  static_cast<std::size_t>(batch_ * hidden_) * sizeof(float));
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    const OpenMpThreads scope(threads_);
    float* const above = floats_at(above_);
    if (sequence_)
      swap_axes(pass.output_gradient, above, batch_, steps_, hidden_);
    else
      std::memcpy(above, pass.output_gradient,
                  static_cast<std::size_t>(batch_ * hidden_) * sizeof(float));
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const bool first = i == 0;
      // Of a layer below the top one every step has a gradient.
      const bool every_step = sequence_ || i + 1 < layers_.size();
      const float* const in = first ? x_.data() : layers_[i - 1].hidden.data();
      float* below = first ? floats_at(below_) : above;
      if (first && pass.input_gradient() == nullptr) below = nullptr;
      if (!layer_backward(layers_[i], in, every_step, pass.parameters, pass.gradients, below))
        return out_of_memory();
    }
    if (pass.input_gradient() != nullptr)
      swap_axes(floats_at(below_), pass.input_gradient(), steps_, batch_, features_);
    return {};
  }

private:
  /// Offsets of a layer's parameters, and what it keeps of a pass, time first.
  struct Memory {
    Index in = 0;
    std::size_t weight_ih = 0, weight_hh = 0, bias_ih = 0, bias_hh = 0;
    Scratch gates;   ///< [time, batch, 4 hidden]: i, f, g, o; then their gradients
    Scratch cells;   ///< [time, batch, hidden]
    Scratch hidden;  ///< likewise
  };

  Status allocate(const KernelRequest& request) {
    const Index rows = steps_ * batch_;
    const auto bytes = [](Index floats) {
      return static_cast<std::size_t>(floats) * sizeof(float);
    };
    TROUPE_ASSIGN(x_, Scratch::zeros(rows * features_));
    for (Memory& layer : layers_) {
      TROUPE_ASSIGN(layer.gates, Scratch::zeros(rows * 4 * hidden_));
      TROUPE_ASSIGN(layer.cells, Scratch::zeros(rows * hidden_));
      TROUPE_ASSIGN(layer.hidden, Scratch::zeros(rows * hidden_));
    }
    bias_ = scratch_.add(bytes(4 * hidden_));
    if (!training_) return {};
    above_ = scratch_.add(bytes(rows * hidden_));
    hidden_gradient_ = scratch_.add(bytes(batch_ * hidden_));
    cell_gradient_ = scratch_.add(bytes(batch_ * hidden_));
    if (request.input_gradient()) below_ = scratch_.add(bytes(rows * features_));
    return {};
  }

  /// [a, b, width] to [b, a, width].
  static void swap_axes(const float* from, float* to, Index a, Index b, Index width) {
    for (Index i = 0; i < a; ++i)
      for (Index j = 0; j < b; ++j)
        std::memcpy(to + (j * a + i) * width, from + (i * b + j) * width,
                    static_cast<std::size_t>(width) * sizeof(float));
  }

  LstmStep step_of(Memory& layer, Index step) const {
    const Index at = step * batch_ * hidden_;
    return {static_cast<std::size_t>(hidden_), layer.gates.data() + 4 * at,
            step == 0 ? nullptr : layer.cells.data() + at - batch_ * hidden_,
            layer.cells.data() + at, layer.hidden.data() + at};
  }

  bool layer_forward(Memory& layer, const float* in, const float* parameters) {
    const Index gates = 4 * hidden_;
    const Index rows = steps_ * batch_;
    float* const bias = floats_at(bias_);
    for (Index i = 0; i < gates; ++i)
      bias[i] = parameters[layer.bias_ih + static_cast<std::size_t>(i)] +
                parameters[layer.bias_hh + static_cast<std::size_t>(i)];
    for (Index row = 0; row < rows; ++row)
      std::memcpy(layer.gates.data() + row * gates, bias,
                  static_cast<std::size_t>(gates) * sizeof(float));
    if (!gemm(rows, gates, layer.in, 1.0f, {in, layer.in},
              {parameters + layer.weight_ih, layer.in, /*transposed=*/true}, 1.0f,
              layer.gates.data(), gates))
      return false;
    const Matrix weight_hh{parameters + layer.weight_hh, hidden_, /*transposed=*/true};
    for (Index step = 0; step < steps_; ++step) {
      const LstmStep at = step_of(layer, step);
      if (step > 0 && !gemm(batch_, gates, hidden_, 1.0f, {at.hidden - batch_ * hidden_, hidden_},
                            weight_hh, 1.0f, at.gates, gates))
        return false;
      lstm_step_forward(at, static_cast<std::size_t>(batch_), threads_);
    }
    return true;
  }

  /// `above` holds the gradient of the layer's output, of the last step alone unless `every_step`;
  /// `below`, where it is not null and which may be the same memory, gets that of its input.
  bool layer_backward(Memory& layer, const float* in, bool every_step, const float* parameters,
                      float* gradients, float* below) {
    const Index gates = 4 * hidden_;
    const Index step_floats = batch_ * hidden_;
    const auto step_bytes = static_cast<std::size_t>(step_floats) * sizeof(float);
    const float* const above = floats_at(above_);
    float* const hidden_gradient = floats_at(hidden_gradient_);
    float* const cell_gradient = floats_at(cell_gradient_);
    std::memset(cell_gradient, 0, step_bytes);
    for (Index step = steps_; step-- > 0;) {
      const LstmStep at = step_of(layer, step);
      const bool last = step + 1 == steps_;
      if (every_step)
        std::memcpy(hidden_gradient, above + step * step_floats, step_bytes);
      else if (last)
        std::memcpy(hidden_gradient, above, step_bytes);
      if (!last && !gemm(batch_, hidden_, gates, 1.0f, {at.gates + batch_ * gates, gates},
                         {parameters + layer.weight_hh, hidden_}, every_step ? 1.0f : 0.0f,
                         hidden_gradient, hidden_))
        return false;
      lstm_step_backward(at, hidden_gradient, cell_gradient, static_cast<std::size_t>(batch_),
                         threads_);
    }
    return parameter_gradients(layer, in, gradients) &&
           (below == nullptr ||
            gemm(steps_ * batch_, layer.in, gates, 1.0f, {layer.gates.data(), gates},
                 {parameters + layer.weight_ih, layer.in}, 0.0f, below, layer.in));
  }

  bool parameter_gradients(const Memory& layer, const float* in, float* gradients) const {
    const Index gates = 4 * hidden_;
    const Index rows = steps_ * batch_;
    const float* const gate_gradients = layer.gates.data();
    column_sums(gate_gradients, static_cast<std::size_t>(rows), static_cast<std::size_t>(gates),
                gradients + layer.bias_ih, /*add=*/false, threads_);
    std::copy_n(gradients + layer.bias_ih, gates, gradients + layer.bias_hh);
    if (!gemm(gates, layer.in, rows, 1.0f, {gate_gradients, gates, /*transposed=*/true},
              {in, layer.in}, 0.0f, gradients + layer.weight_ih, layer.in))
      return false;
    float* const weight_hh = gradients + layer.weight_hh;
    if (steps_ == 1) {
      std::fill_n(weight_hh, gates * hidden_, 0.0f);
      return true;
    }
    return gemm(gates, hidden_, rows - batch_, 1.0f,
                {gate_gradients + batch_ * gates, gates, /*transposed=*/true},
                {layer.hidden.data(), hidden_}, 0.0f, weight_hh, hidden_);
  }

  float* floats_at(std::size_t offset) const {
    return reinterpret_cast<float*>(scratch_.at(offset));
  }
  Status out_of_memory() const {
    return {Code::resource_exhausted, fmt::format("{}: out of memory", name_)};
  }

  std::string name_;
  int threads_;
  bool training_;
  bool sequence_ = true;
  Index batch_ = 0, steps_ = 0, features_ = 0, hidden_ = 0;
  Scratch x_;  ///< the input, time first
  std::vector<Memory> layers_;
  // In the shared scratch.
  ScratchPlaces scratch_;
  std::size_t bias_ = 0, above_ = 0, below_ = 0, hidden_gradient_ = 0, cell_gradient_ = 0;
};

}  // namespace

MadeKernel make_lstm(const KernelRequest& request) {
  if (request.choice == KernelChoice::portable) return MadeKernel(nullptr);
  return LstmKernel::make(request);
}

}  // namespace troupe::kernels::cpu
