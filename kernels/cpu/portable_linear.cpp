#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/cpu/internal/portable.hpp"

namespace troupe::kernels::cpu {

Result<Scratch> Scratch::zeros(Index count) {
  Scratch scratch;
  TROUPE_ASSIGN(scratch.buffer_, Buffer::allocate(static_cast<std::size_t>(count) * sizeof(float)));
  scratch.clear();
  return scratch;
}

void Scratch::clear() noexcept {
  if (!buffer_.empty()) std::memset(buffer_.data(), 0, buffer_.size());
}

namespace {

/// Threads share the groups, and the columns of the weights' gradient: the bits are those of one.
class PortableLinear final : public LayerKernel {
public:
  static MadeKernel make(const KernelRequest& request) {
    auto kernel = std::make_unique<PortableLinear>(request);
    TROUPE_ASSIGN(kernel->rows_, Scratch::zeros(kernel->groups_ * kLanes * kernel->row_));
    return MadeKernel(std::move(kernel));
  }

  explicit PortableLinear(const KernelRequest& request) {
    const Layer& layer = request.layers[0];
    threads_ = request.threads;
    weight_offset_ = request.offset_of(0);
    bias_offset_ = request.offset_of(1);
    inputs_ = {interleaved_activation(request.input().shape)};
    output_ = interleaved_activation(request.output_shape());
    groups_ = groups_of(output_);
    in_ = layer.input()[0];
    out_ = layer.output[0];
    row_ = (in_ + kLanes - 1) / kLanes * kLanes;
  }

  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

  Status forward(const ForwardPass& pass) override {
    each_groups([&](Index group, Index groups) {
      loops_.linear_forward(groups, in_, out_, pass.input() + group * in_ * kLanes,
                            pass.parameters + weight_offset_, pass.parameters + bias_offset_,
                            pass.output + group * out_ * kLanes);
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    each_groups([&](Index first, Index groups) {
      for (Index group = first; group < first + groups; ++group)
        loops_.deinterleave(pass.input() + group * in_ * kLanes, in_,
                            rows_.data() + group * kLanes * row_, row_);
      if (pass.input_gradient() != nullptr)
        loops_.linear_input(groups, in_, out_, pass.output_gradient + first * out_ * kLanes,
                            pass.parameters + weight_offset_,
                            pass.input_gradient() + first * in_ * kLanes);
    });
    const auto pieces = static_cast<std::size_t>((in_ + kColumns - 1) / kColumns);
    parallel_each(threads_, pieces, [&](std::size_t piece, std::size_t) {
      const Index begin = static_cast<Index>(piece) * kColumns;
      loops_.linear_weights(groups_, in_, out_, begin, std::min(begin + kColumns, in_),
                            rows_.data(), row_, pass.output_gradient,
                            pass.gradients + weight_offset_);
    });
    for (Index o = 0; o < out_; ++o) {
      float lanes[kLanes] = {};
      for (Index group = 0; group < groups_; ++group)
        for (Index lane = 0; lane < kLanes; ++lane)
          lanes[lane] += pass.output_gradient[(group * out_ + o) * kLanes + lane];
      pass.gradients[bias_offset_ + static_cast<std::size_t>(o)] = sum_of_lanes(lanes);
    }
    return {};
  }

private:
  /// Of the weights' gradient, for one thread: as many as the loops take at once.
  static constexpr Index kColumns = 32;

  /// Calls body(first, count) for runs of groups, of which the loops take two at once.
  template <class Body>
  void each_groups(const Body& body) {
    parallel_each(threads_, static_cast<std::size_t>((groups_ + 1) / 2),
                  [&](std::size_t pair, std::size_t) {
                    const Index first = static_cast<Index>(pair) * 2;
                    body(first, std::min<Index>(2, groups_ - first));
                  });
  }

  const LaneLoops& loops_ = lane_loops();
  std::size_t weight_offset_ = 0, bias_offset_ = 0;
  int threads_ = 1;
  Index groups_ = 0, in_ = 0, out_ = 0;
  Index row_ = 0;  ///< floats of a row of `rows_`
  Scratch rows_;   ///< the input sample by sample, for the weights' gradient
};

/// Between plain and interleaved samples; lanes without a sample are zeros.
class Interleave final : public LayerKernel {
public:
  Interleave(const Activation& from, const Activation& to, int threads) : threads_(threads) {
    inputs_ = {from};
    output_ = to;
    batch_ = from.shape[0];
    features_ = from.shape.without_first().elements();
  }
  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }
  Status forward(const ForwardPass& pass) override {
    move(inputs_[0].layout == Activation::Layout::plain, pass.input(), pass.output);
    return {};
  }
  Status backward(const BackwardPass& pass) override {
    if (pass.input_gradient() != nullptr)
      move(output_.layout == Activation::Layout::plain, pass.output_gradient,
           pass.input_gradient());
    return {};
  }

private:
  void move(bool from_plain, const float* from, float* to) {
    const Index group_floats = features_ * kLanes;
    const Index full = batch_ / kLanes;
    parallel_each(threads_, static_cast<std::size_t>(full), [&](std::size_t n, std::size_t) {
      const auto group = static_cast<Index>(n);
      if (from_plain)
        loops_.interleave(from + group * group_floats, features_, features_,
                          to + group * group_floats);
      else
        loops_.deinterleave(from + group * group_floats, features_, to + group * group_floats,
                            features_);
    });
    const Index rest = batch_ % kLanes;
    if (rest == 0) return;
    from += full * group_floats;
    to += full * group_floats;
    for (Index i = 0; i < features_; ++i)
      for (Index n = 0; n < kLanes; ++n) {
        if (from_plain)
          to[i * kLanes + n] = n < rest ? from[n * features_ + i] : 0.0f;
        else if (n < rest)
          to[n * features_ + i] = from[i * kLanes + n];
      }
  }

  const LaneLoops& loops_ = lane_loops();
  int threads_;
  Index batch_ = 0, features_ = 0;
};

}  // namespace

MadeKernel make_portable_linear(const KernelRequest& request) {
  if (request.layers[0].parameters.size() != 2) return MadeKernel(nullptr);
  return PortableLinear::make(request);
}

MadeKernel make_interleave(const Activation& from, const Activation& to, int threads) {
  return MadeKernel(std::make_unique<Interleave>(from, to, threads));
}

}  // namespace troupe::kernels::cpu
