#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/cpu/internal/portable.hpp"

namespace troupe::kernels::cpu {

namespace {

/// Any pooling on interleaved samples. Simple rather than fast: the fused kernel takes the usual
/// case.
class PortablePooling final : public LayerKernel {
public:
  explicit PortablePooling(const KernelRequest& request)
      : spec_(std::get<Pooling>(request.layers[0].spec)), threads_(request.threads) {
    const Layer& layer = request.layers[0];
    inputs_ = {interleaved_activation(request.input().shape)};
    output_ = interleaved_activation(request.output_shape());
    in_height_ = layer.input()[1];
    in_width_ = layer.input()[2];
    out_height_ = layer.output[1];
    out_width_ = layer.output[2];
    images_ = groups_of(output_) * layer.input()[0];
    if (spec_.kind == Pooling::Kind::max) chosen_.resize(output_.floats);
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }

  Status forward(const ForwardPass& pass) override {
    each_window([&](Index in, Index out, const Window& window) {
      if (spec_.kind == Pooling::Kind::max)
        maximum(pass.input() + in, window, pass.output + out, chosen_.data() + out);
      else
        mean(pass.input() + in, window, pass.output + out);
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    if (pass.input_gradient() == nullptr) return {};
    std::fill_n(pass.input_gradient(), inputs_[0].floats, 0.0f);
    each_window([&](Index in, Index out, const Window& window) {
      const float* const dy = pass.output_gradient + out;
      float* const dx = pass.input_gradient() + in;
      if (spec_.kind == Pooling::Kind::max) {
        for (Index lane = 0; lane < kLanes; ++lane)
          dx[chosen_[static_cast<std::size_t>(out + lane)] * kLanes + lane] += dy[lane];
        return;
      }
      each_element(window, [&](Index at) {
        for (Index lane = 0; lane < kLanes; ++lane) dx[at * kLanes + lane] += dy[lane] / area();
      });
    });
    return {};
  }

private:
  /// Rows and columns of the input, as far as they are inside it.
  struct Window {
    Index top, bottom, left, right;
  };

  float area() const { return static_cast<float>(spec_.kernel * spec_.kernel); }

  template <class Body>
  void each_window(Body body) const {
    parallel_each(threads_, static_cast<std::size_t>(images_), [&](std::size_t n, std::size_t) {
      const auto image = static_cast<Index>(n);
      for (Index r = 0; r < out_height_; ++r)
        for (Index c = 0; c < out_width_; ++c) {
          const Index top = r * spec_.stride - spec_.padding;
          const Index left = c * spec_.stride - spec_.padding;
          body(image * in_height_ * in_width_ * kLanes,
               ((image * out_height_ + r) * out_width_ + c) * kLanes,
               Window{std::max<Index>(top, 0), std::min<Index>(top + spec_.kernel, in_height_),
                      std::max<Index>(left, 0), std::min<Index>(left + spec_.kernel, in_width_)});
        }
    });
  }
  template <class Body>
  void each_element(const Window& window, Body body) const {
    for (Index r = window.top; r < window.bottom; ++r)
      for (Index c = window.left; c < window.right; ++c) body(r * in_width_ + c);
  }

  void maximum(const float* x, const Window& window, float* y, std::int32_t* chosen) const {
    std::fill_n(y, kLanes, -std::numeric_limits<float>::infinity());
    std::fill_n(chosen, kLanes, static_cast<std::int32_t>(window.top * in_width_ + window.left));
    each_element(window, [&](Index at) {
      for (Index lane = 0; lane < kLanes; ++lane) {
        const float element = x[at * kLanes + lane];
        // A NaN wins and stays.
        const bool better = element > y[lane] || element != element;
        y[lane] = better ? element : y[lane];
        chosen[lane] = better ? static_cast<std::int32_t>(at) : chosen[lane];
      }
    });
  }
  void mean(const float* x, const Window& window, float* y) const {
    float sums[kLanes] = {};
    each_element(window, [&](Index at) {
      for (Index lane = 0; lane < kLanes; ++lane) sums[lane] += x[at * kLanes + lane];
    });
    for (Index lane = 0; lane < kLanes; ++lane) y[lane] = sums[lane] / area();
  }

  Pooling spec_;
  int threads_;
  Index in_height_ = 0, in_width_ = 0, out_height_ = 0, out_width_ = 0;
  Index images_ = 0;                  ///< groups times channels
  std::vector<std::int32_t> chosen_;  ///< which element of the image each maximum was
};

}  // namespace

MadeKernel make_portable_pooling(const KernelRequest& request) {
  return MadeKernel(std::make_unique<PortablePooling>(request));
}

}  // namespace troupe::kernels::cpu
