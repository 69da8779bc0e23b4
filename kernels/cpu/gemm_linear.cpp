#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "kernels/cpu/internal/column_sums.hpp"
#include "kernels/cpu/internal/dnnl_support.hpp"
#include "kernels/cpu/internal/gemm.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/wide_loop.hpp"

namespace troupe::kernels::cpu {

TROUPE_WIDE_LOOP(add_to_rows, (float* rows, std::size_t count, std::size_t width, const float* x),
                 (rows, count, width, x)) {
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t i = 0; i < width; ++i) rows[r * width + i] += x[i];
}

namespace {

/// A linear layer on rows of any number of axes, whose weight may be another layer's too: three
/// products of matrices, all as they lie. At inference the GELU that follows goes over the rows
/// with the bias: the same bits as one after the other, in training too, but backward would need
/// what is between them kept, and then nothing is saved.
class GemmLinear final : public LayerKernel {
public:
  explicit GemmLinear(const KernelRequest& request)
      : name_(describe(request.layers[0].spec)),
        threads_(request.threads),
        out_(std::get<Linear>(request.layers[0].spec).out_features),
        weight_offset_(request.offset_of(0)),
        adds_weight_(request.adds_gradient(0)) {
    inputs_ = {plain_activation(request.input().shape)};
    output_ = plain_activation(request.output_shape());
    const Shape& input = request.input().shape;
    in_ = input[input.rank() - 1];
    rows_ = input.elements() / in_;
    has_bias_ = request.layers[0].parameters.size() > 1;
    if (has_bias_) bias_offset_ = request.offset_of(1);
    if (request.layers.size() > 1) gelu_ = std::get<Gelu>(request.layers[1].spec).form;
  }

  bool uses_library() const noexcept override { return true; }
  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

  Status forward(const ForwardPass& pass) override {
    const OpenMpThreads scope(threads_);
    const Matrix weight{pass.parameters + weight_offset_, in_, /*transposed=*/true};
    if (!gemm(rows_, out_, in_, 1.0f, {pass.input(), in_}, weight, 0.0f, pass.output, out_))
      return out_of_memory();
    if (!has_bias_ && !gelu_) return {};
    const auto width = static_cast<std::size_t>(out_);
    constexpr std::size_t kRows = 16;  // begin on a cache line, and stay in the cache between loops
    parallel_for(threads_, static_cast<std::size_t>(rows_), kRows,
                 [&](std::size_t begin, std::size_t end) {
                   for (; begin < end; begin += kRows) {
                     float* const rows = pass.output + begin * width;
                     const std::size_t count = std::min(kRows, end - begin);
                     if (has_bias_) add_to_rows(rows, count, width, pass.parameters + bias_offset_);
                     if (gelu_) gelu(*gelu_, rows, rows, count * width);
                   }
                 });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    const OpenMpThreads scope(threads_);
    const Matrix gradient{pass.output_gradient, out_};
    const Matrix gradient_transposed{pass.output_gradient, out_, /*transposed=*/true};
    if (!gemm(out_, in_, rows_, 1.0f, gradient_transposed, {pass.input(), in_},
              adds_weight_ ? 1.0f : 0.0f, pass.gradients + weight_offset_, in_))
      return out_of_memory();
    if (has_bias_)
      column_sums(pass.output_gradient, static_cast<std::size_t>(rows_),
                  static_cast<std::size_t>(out_), pass.gradients + bias_offset_, /*add=*/false,
                  threads_);
    if (pass.input_gradient() == nullptr) return {};
    if (!gemm(rows_, in_, out_, 1.0f, gradient, {pass.parameters + weight_offset_, in_}, 0.0f,
              pass.input_gradient(), in_))
      return out_of_memory();
    return {};
  }

private:
  Status out_of_memory() const {
    return {Code::resource_exhausted, fmt::format("{}: out of memory", name_)};
  }

  std::string name_;
  int threads_;
  std::int64_t out_, in_ = 0, rows_ = 0;
  std::size_t weight_offset_, bias_offset_ = 0;
  bool has_bias_ = false;
  std::optional<Gelu::Form> gelu_;
  bool adds_weight_;
};

}  // namespace

MadeKernel make_gemm_linear(const KernelRequest& request) {
  return MadeKernel(std::make_unique<GemmLinear>(request));
}

}  // namespace troupe::kernels::cpu
