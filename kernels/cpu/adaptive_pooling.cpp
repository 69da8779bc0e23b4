#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/dnnl_support.hpp"
#include "kernels/cpu/internal/parallel.hpp"

namespace troupe::kernels::cpu {

namespace {

/// Windows of several sizes, channel by channel of each sample, which threads share: the same bits
/// for any number of them and on every CPU.
class AdaptivePoolingKernel final : public LayerKernel {
public:
  explicit AdaptivePoolingKernel(const KernelRequest& request)
      : max_(std::get<AdaptivePooling>(request.layers[0].spec).kind == Pooling::Kind::max),
        identity_(request.layers[0].input() == request.layers[0].output),
        threads_(request.threads) {
    const Layer& layer = request.layers[0];
    inputs_ = {identity_ ? request.input() : plain_activation(request.input().shape)};
    output_ = identity_ ? request.input() : plain_activation(request.output_shape());
    in_height_ = static_cast<std::size_t>(layer.input()[1]);
    in_width_ = static_cast<std::size_t>(layer.input()[2]);
    rows_ = windows(in_height_, static_cast<std::size_t>(layer.output[1]));
    columns_ = windows(in_width_, static_cast<std::size_t>(layer.output[2]));
    images_ = static_cast<std::size_t>(request.batch() * layer.input()[0]);
    if (max_ && !identity_ && request.mode == Mode::training) chosen_.resize(output_.floats);
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false,
            .backward_reads_output = false,
            .passes_gradient = identity_,
            .alias = identity_};
  }

  Status forward(const ForwardPass& pass) override {
    each_image([&](std::size_t image) {
      const float* const x = pass.input() + image * in_height_ * in_width_;
      each_window(image, [&](std::size_t at, const Window& rows, const Window& columns) {
        if (max_)
          pass.output[at] = maximum(x, rows, columns, chosen_.empty() ? nullptr : &chosen_[at]);
        else
          pass.output[at] = sum(x, rows, columns) / area(rows, columns);
      });
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    if (pass.input_gradient() == nullptr) return {};
    each_image([&](std::size_t image) {
      float* const dx = pass.input_gradient() + image * in_height_ * in_width_;
      std::fill_n(dx, in_height_ * in_width_, 0.0f);
      each_window(image, [&](std::size_t at, const Window& rows, const Window& columns) {
        if (max_) {
          dx[chosen_[at]] += pass.output_gradient[at];
          return;
        }
        const float share = pass.output_gradient[at] / area(rows, columns);
        for (std::size_t r = rows.begin; r < rows.end; ++r)
          for (std::size_t c = columns.begin; c < columns.end; ++c) dx[r * in_width_ + c] += share;
      });
    });
    return {};
  }

private:
  /// Of an axis of the input.
  struct Window {
    std::size_t begin, end;
  };

  static std::vector<Window> windows(std::size_t in, std::size_t out) {
    std::vector<Window> list;
    for (std::size_t i = 0; i < out; ++i)
      list.push_back({i * in / out, ((i + 1) * in + out - 1) / out});
    return list;
  }
  static float area(const Window& rows, const Window& columns) {
    return static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
  }
  float sum(const float* x, const Window& rows, const Window& columns) const {
    float total = 0.0f;
    for (std::size_t r = rows.begin; r < rows.end; ++r)
      for (std::size_t c = columns.begin; c < columns.end; ++c) total += x[r * in_width_ + c];
    return total;
  }
  /// The first of equals; a NaN wins.
  float maximum(const float* x, const Window& rows, const Window& columns,
                std::uint32_t* chosen) const {
    float best = -std::numeric_limits<float>::infinity();
    std::size_t place = rows.begin * in_width_ + columns.begin;
    for (std::size_t r = rows.begin; r < rows.end; ++r)
      for (std::size_t c = columns.begin; c < columns.end; ++c) {
        const float element = x[r * in_width_ + c];
        if (element <= best || best != best) continue;
        best = element;
        place = r * in_width_ + c;
      }
    if (chosen != nullptr) *chosen = static_cast<std::uint32_t>(place);
    return best;
  }

  template <class Body>
  void each_image(const Body& body) const {
    const OpenMpThreads scope(threads_);
    parallel_each(inputs_[0].floats < kLeast ? 1 : threads_, images_,
                  [&](std::size_t image, std::size_t) { body(image); });
  }
  template <class Body>
  void each_window(std::size_t image, const Body& body) const {
    std::size_t at = image * rows_.size() * columns_.size();
    for (const Window& rows : rows_)
      for (const Window& columns : columns_) body(at++, rows, columns);
  }

  /// Floats that are not worth a thread.
  static constexpr std::size_t kLeast = 1 << 14;

  bool max_;
  bool identity_;  ///< each window is one element
  int threads_;
  std::size_t in_height_ = 0, in_width_ = 0;
  std::vector<Window> rows_, columns_;
  std::size_t images_ = 0;             ///< samples times channels
  std::vector<std::uint32_t> chosen_;  ///< which element of the image each maximum was
};

}  // namespace

MadeKernel make_adaptive_pooling(const KernelRequest& request) {
  return MadeKernel(std::make_unique<AdaptivePoolingKernel>(request));
}

}  // namespace troupe::kernels::cpu
