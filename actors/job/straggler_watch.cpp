#include "actors/job/straggler_watch.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::train {
namespace {

/// One slow second is no straggler.
constexpr int kTimesInARow = 3;
/// Where ranks take less than this longer, they differ by what else the machine does.
constexpr double kLeastSeconds = 1e-3;

}  // namespace

std::optional<StragglerWatch::Verdict> StragglerWatch::pace(std::size_t index, double seconds) {
  if (index >= paces_.size() || !(seconds > 0)) return std::nullopt;
  Pace& own = paces_[index];
  own.seconds = seconds;
  const double others = median_of_others(index);
  const auto exceeds = [&](double factor) {
    return factor > 0 && seconds > factor * others && seconds > others + kLeastSeconds;
  };
  const bool drop = exceeds(options_.drop_factor);
  if (others == 0 || (!exceeds(options_.report_factor) && !drop)) {
    own.slow = 0;
    own.told = false;
    return std::nullopt;
  }
  if (++own.slow < kTimesInARow || (own.told && !drop)) return std::nullopt;
  own.told = true;
  return Verdict{fmt::format("its ranks take {:.3g} ms a step, those of the other nodes {:.3g} ms",
                             1e3 * seconds, 1e3 * others),
                 drop};
}

double StragglerWatch::median_of_others(std::size_t index) const {
  std::vector<double> others;
  for (std::size_t i = 0; i < paces_.size(); ++i)
    if (i != index && paces_[i].seconds > 0) others.push_back(paces_[i].seconds);
  if (others.empty()) return 0;
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  return *middle;
}

}  // namespace troupe::train
