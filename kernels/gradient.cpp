#include "kernels/gradient.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/internal/square_sum.hpp"
#include "runtime/base/check.hpp"

namespace troupe::kernels {

bool is_whole_gradient(const Model& model, std::span<const GradientRun> gradient) noexcept {
  std::size_t end = 0;
  for (const GradientRun& run : gradient) {
    if (run.begin != end) return false;
    end = run.end();
  }
  return end >= model.trained_size();
}

double gradient_norm(const Model& model, std::span<const GradientRun> gradient) {
  TROUPE_CHECK(is_whole_gradient(model, gradient), "the norm of a part of a gradient");
  SquareSum squares;
  for (const GradientRun& run : gradient) {
    if (run.begin >= model.trained_size()) break;
    squares.add(run.values.first(std::min(run.values.size(), model.trained_size() - run.begin)));
  }
  return std::sqrt(squares.total());
}

double clip_factor(double norm, double most) noexcept {
  return std::min(1.0, most / (norm + 1e-6));
}

}  // namespace troupe::kernels
