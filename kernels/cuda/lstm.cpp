#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/column_sums.hpp"
#include "kernels/cuda/internal/cuda_kernel.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/lstm_bodies.hpp"
#include "kernels/cuda/internal/matmul.hpp"

// As on the CPU: products of matrices by the library, the gates by kernels of our own.

namespace troupe::kernels::cuda {

namespace {

MatrixLayout transposed(MatrixLayout layout) {
  layout.transposed = true;
  return layout;
}

struct LstmSizes {
  std::int64_t batch, steps, hidden;
  std::int64_t gates() const { return 4 * hidden; }
  std::int64_t rows() const { return steps * batch; }
  std::int64_t step_floats() const { return batch * hidden; }
};

/// The products of a layer whose input has `in` features.
struct LstmProducts {
  static Result<LstmProducts> make(Context& context, const LstmSizes& sizes, std::int64_t in,
                                   bool training, const ScratchPlaces& scratch) {
    const auto [batch, steps, hidden] = sizes;
    const std::int64_t gates = sizes.gates(), rows = sizes.rows();
    const MatrixLayout inputs{.stride = in}, hiddens{.stride = hidden}, all_gates{.stride = gates};
    // A step's rows begin so many floats behind the first step's.
    MatrixLayout step_hiddens = hiddens, step_gates = all_gates;
    step_hiddens.alignment = alignment_at(sizes.step_floats());
    step_gates.alignment = alignment_at(4 * sizes.step_floats());
    LstmProducts made;
    const auto product = [&](Matmul& to, const MatmulShape& shape) -> Status {
      TROUPE_ASSIGN(to, Matmul::make(context, shape, scratch));
      return {};
    };
    TROUPE_TRY(product(made.input, {rows, gates, in, inputs, transposed(inputs), all_gates}));
    TROUPE_TRY(product(made.recurrent,
                       {batch, gates, hidden, step_hiddens, transposed(hiddens), step_gates}));
    if (!training) return made;
    TROUPE_TRY(product(made.hidden_gradient, {batch, hidden, gates, step_gates, hiddens, hiddens}));
    TROUPE_TRY(
        product(made.input_weight, {gates, in, rows, transposed(all_gates), inputs, inputs}));
    if (steps > 1)
      TROUPE_TRY(product(made.hidden_weight,
                         {gates, hidden, rows - batch, transposed(step_gates), hiddens, hiddens}));
    TROUPE_TRY(product(made.input_gradient, {rows, in, gates, all_gates, inputs, inputs}));
    return made;
  }

  Matmul input, recurrent;
  Matmul hidden_gradient, input_weight, hidden_weight, input_gradient;
};

/// Inside, time comes before the batch: a step is then a run of rows, and what goes from each step
/// to the next (the weight's gradient) one product over all steps.
class LstmKernel final : public CudaKernel {
public:
  static MadeKernel make(Context& context, const KernelRequest& request) {
    auto kernel = std::make_unique<LstmKernel>(context, request);
    TROUPE_TRY(kernel->allocate());
    TROUPE_TRY(kernel->plan());
    return MadeKernel(std::move(kernel));
  }

  LstmKernel(Context& context, const KernelRequest& request)
      : CudaKernel(context, request),
        training_(request.mode == Mode::training),
        sequence_(std::get<Lstm>(request.layers[0].spec).sequence),
        features_(request.layers[0].input()[1]),
        sizes_{request.batch(), request.layers[0].input()[0],
               std::get<Lstm>(request.layers[0].spec).hidden},
        scratch_(request.scratch),
        bias_sums_(size(sizes_.rows()), size(sizes_.gates()), scratch_) {
    layers_.resize(size(std::get<Lstm>(request.layers[0].spec).layers));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      layers_[i].weight_ih = request.offset_of(4 * i);
      layers_[i].weight_hh = request.offset_of(4 * i + 1);
      layers_[i].bias_ih = request.offset_of(4 * i + 2);
      layers_[i].bias_hh = request.offset_of(4 * i + 3);
    }
    if (!training_) return;
    above_ = scratch_.add(bytes(sizes_.rows() * sizes_.hidden));
    below_ = scratch_.add(bytes(sizes_.rows() * features_));
    hidden_gradient_ = scratch_.add(bytes(sizes_.step_floats()));
    cell_gradient_ = scratch_.add(bytes(sizes_.step_floats()));
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

private:
  /// Offsets of a layer's parameters, and what it keeps of a pass, time first.
  struct Memory {
    std::size_t weight_ih = 0, weight_hh = 0, bias_ih = 0, bias_hh = 0;
    Buffer gates;   ///< [time, batch, 4 hidden]: i, f, g, o; then their gradients
    Buffer cells;   ///< [time, batch, hidden]
    Buffer hidden;  ///< likewise
  };

  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  static std::size_t bytes(std::int64_t n) { return size(n) * sizeof(float); }

  Status allocate() {
    TROUPE_ASSIGN(x_, context().allocate(bytes(sizes_.rows() * features_)));
    for (Memory& layer : layers_) {
      TROUPE_ASSIGN(layer.gates, context().allocate(bytes(sizes_.rows() * sizes_.gates())));
      TROUPE_ASSIGN(layer.cells, context().allocate(bytes(sizes_.rows() * sizes_.hidden)));
      TROUPE_ASSIGN(layer.hidden, context().allocate(bytes(sizes_.rows() * sizes_.hidden)));
    }
    return {};
  }
  Status plan() {
    TROUPE_ASSIGN(first_, LstmProducts::make(context(), sizes_, features_, training_, scratch_));
    if (layers_.size() == 1) return {};
    TROUPE_ASSIGN(other_,
                  LstmProducts::make(context(), sizes_, sizes_.hidden, training_, scratch_));
    return {};
  }
  const LstmProducts& products_of(std::size_t layer) const { return layer == 0 ? first_ : other_; }
  float* input_of(std::size_t layer) { return floats(layer == 0 ? x_ : layers_[layer - 1].hidden); }

  Status enqueue_forward(const ForwardPass& pass, CudaStream& stream) override {
    TROUPE_TRY(swap_axes(stream, pass.input(), floats(x_), sizes_.batch, sizes_.steps, features_));
    for (std::size_t i = 0; i < layers_.size(); ++i)
      TROUPE_TRY(layer_forward(stream, i, pass.parameters));
    const float* const out = floats(layers_.back().hidden);
    if (sequence_)
      return swap_axes(stream, out, pass.output, sizes_.steps, sizes_.batch, sizes_.hidden);
    return stream.copy(pass.output, out + (sizes_.steps - 1) * sizes_.step_floats(),
                       bytes(sizes_.step_floats()));
  }

  Status enqueue_backward(const BackwardPass& pass, CudaStream& stream) override {
    if (sequence_)
      TROUPE_TRY(swap_axes(stream, pass.output_gradient, at(above_), sizes_.batch, sizes_.steps,
                           sizes_.hidden));
    else
      TROUPE_TRY(stream.copy(at(above_), pass.output_gradient, bytes(sizes_.step_floats())));
    for (std::size_t i = layers_.size(); i-- > 0;) {
      TROUPE_TRY(gate_gradients(stream, i, pass.parameters));
      TROUPE_TRY(parameter_gradients(stream, i, pass.gradients));
      if (i == 0 && pass.input_gradient() == nullptr) return {};
      TROUPE_TRY(enqueue(products_of(i).input_gradient, stream, floats(layers_[i].gates),
                         pass.parameters + layers_[i].weight_ih, 0.0f,
                         at(i == 0 ? below_ : above_)));
    }
    return swap_axes(stream, at(below_), pass.input_gradient(), sizes_.steps, sizes_.batch,
                     features_);
  }

  Status layer_forward(CudaStream& stream, std::size_t index, const float* parameters) {
    Memory& layer = layers_[index];
    const LstmProducts& products = products_of(index);
    float* const gates = floats(layer.gates);
    TROUPE_TRY(for_each(stream.handle(), size(sizes_.rows() * sizes_.gates()),
                        LstmBiases{parameters + layer.bias_ih, parameters + layer.bias_hh,
                                   size(sizes_.gates()), gates}));
    TROUPE_TRY(enqueue(products.input, stream, input_of(index), parameters + layer.weight_ih, 1.0f,
                       gates));
    for (std::int64_t step = 0; step < sizes_.steps; ++step) {
      const std::int64_t here = step * sizes_.step_floats();
      float *const cells = floats(layer.cells) + here, *const hidden = floats(layer.hidden) + here;
      if (step > 0)
        TROUPE_TRY(enqueue(products.recurrent, stream, hidden - sizes_.step_floats(),
                           parameters + layer.weight_hh, 1.0f, gates + 4 * here));
      TROUPE_TRY(for_each(stream.handle(), size(sizes_.step_floats()),
                          LstmCellForward{size(sizes_.hidden), gates + 4 * here,
                                          before(layer, step), cells, hidden}));
    }
    return {};
  }

  /// From the gradient of the layer's output in `above_`, of the last step alone where no other has
  /// one: each step's, from the last to the first.
  Status gate_gradients(CudaStream& stream, std::size_t index, const float* parameters) {
    Memory& layer = layers_[index];
    const bool every_step = sequence_ || index + 1 < layers_.size();
    const std::int64_t n = sizes_.step_floats();
    float *const gates = floats(layer.gates), *const hidden_gradient = at(hidden_gradient_);
    TROUPE_TRY(stream.zero(at(cell_gradient_), bytes(n)));
    for (std::int64_t step = sizes_.steps; step-- > 0;) {
      const bool last = step + 1 == sizes_.steps;
      if (every_step || last)
        TROUPE_TRY(
            stream.copy(hidden_gradient, at(above_) + (every_step ? step * n : 0), bytes(n)));
      if (!last)
        TROUPE_TRY(enqueue(products_of(index).hidden_gradient, stream, gates + 4 * (step + 1) * n,
                           parameters + layer.weight_hh, every_step ? 1.0f : 0.0f,
                           hidden_gradient));
      TROUPE_TRY(for_each(
          stream.handle(), size(n),
          LstmCellBackward{size(sizes_.hidden), gates + 4 * step * n, before(layer, step),
                           floats(layer.cells) + step * n, hidden_gradient, at(cell_gradient_)}));
    }
    return {};
  }

  Status parameter_gradients(CudaStream& stream, std::size_t index, float* gradients) {
    Memory& layer = layers_[index];
    const LstmProducts& products = products_of(index);
    const float* const gates = floats(layer.gates);
    TROUPE_TRY(bias_sums_.enqueue(stream.handle(), scratch_, gates, gradients + layer.bias_ih));
    TROUPE_TRY(
        stream.copy(gradients + layer.bias_hh, gradients + layer.bias_ih, bytes(sizes_.gates())));
    TROUPE_TRY(enqueue(products.input_weight, stream, gates, input_of(index), 0.0f,
                       gradients + layer.weight_ih));
    float* const weight_hh = gradients + layer.weight_hh;
    if (sizes_.steps == 1) return stream.zero(weight_hh, bytes(sizes_.gates() * sizes_.hidden));
    return enqueue(products.hidden_weight, stream, gates + 4 * sizes_.step_floats(),
                   floats(layer.hidden), 0.0f, weight_hh);
  }

  /// The cells of the step before; null for the first, which begins with zeros.
  float* before(Memory& layer, std::int64_t step) const {
    return step == 0 ? nullptr : floats(layer.cells) + (step - 1) * sizes_.step_floats();
  }
  static Status swap_axes(CudaStream& stream, const float* from, float* to, std::int64_t a,
                          std::int64_t b, std::int64_t width) {
    return for_each(stream.handle(), size(a * b * width),
                    SwapAxes{from, to, size(a), size(b), size(width)});
  }
  Status enqueue(const Matmul& matmul, CudaStream& stream, const float* a, const float* b,
                 float beta, float* c) {
    return matmul.enqueue(context(), stream.handle(), scratch_, a, b, beta, c);
  }
  float* at(std::size_t place) const { return reinterpret_cast<float*>(scratch_.at(place)); }

  bool training_, sequence_;
  std::int64_t features_;
  LstmSizes sizes_;
  ScratchPlaces scratch_;
  ColumnSums bias_sums_;
  std::size_t above_ = 0, below_ = 0, hidden_gradient_ = 0, cell_gradient_ = 0;  ///< in the scratch
  LstmProducts first_, other_;
  Buffer x_;  ///< the input, time first
  std::vector<Memory> layers_;
};

}  // namespace

MadeKernel make_lstm(Context& context, const KernelRequest& request) {
  return LstmKernel::make(context, request);
}

}  // namespace troupe::kernels::cuda
