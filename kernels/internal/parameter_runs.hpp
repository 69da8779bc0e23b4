#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/gradient.hpp"
#include "kernels/model.hpp"

namespace troupe::kernels {

/// A run of trained floats that an optimizer treats alike.
struct ParameterRun {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool decays = true;
};

/// One for each trained parameter, in order, without the padding. With `decay_vectors` off, those
/// of one dimension do not decay.
std::vector<ParameterRun> parameter_runs(const Model& model, bool decay_vectors);

/// As few as possible for an optimizer that looks at nothing but decay: neighbours that decay alike
/// become one, with the padding between them.
std::vector<ParameterRun> decay_runs(const Model& model, bool decay_vectors);

/// A run of floats that move towards those of the newest batch alike.
struct StatisticRun {
  std::size_t begin = 0;
  std::size_t end = 0;
  float momentum = 0.0f;
};

/// As few as possible: neighbours of one momentum become one, with the padding between them, which
/// is zero and stays so.
std::vector<StatisticRun> statistic_runs(const Model& model);

/// Calls use(begin, gradient) for each piece of the run that lies in one run of the gradient, in
/// order. `gradient` is whole.
template <class Use>
void for_each_piece(std::span<const GradientRun> gradient, const ParameterRun& run, Use use) {
  auto at = std::upper_bound(gradient.begin(), gradient.end(), run.begin,
                             [](std::size_t x, const GradientRun& g) { return x < g.end(); });
  for (std::size_t begin = run.begin; begin < run.end; ++at) {
    const std::size_t end = std::min(run.end, at->end());
    if (end > begin) use(begin, at->values.subspan(begin - at->begin, end - begin));
    begin = end;
  }
}

}  // namespace troupe::kernels
