#include <algorithm>
#include <vector>

#include "actors/config/internal/key_table.hpp"

namespace troupe::train::internal {
namespace {

/// Edits (insert, remove, replace, swap neighbours) that make one of the other: the optimal string
/// alignment distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

constexpr std::size_t kLongestName = 200;  // the distance's cost is the product of the lengths

}  // namespace

std::string_view closest(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.size() > kLongestName) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 4) + 1;
  for (const auto candidate : candidates) {
    const std::size_t d = distance(name, candidate);
    if (d >= best_distance) continue;
    best_distance = d;
    best = candidate;
  }
  return best;
}

std::string_view closest_key(std::string_view name) {
  std::vector<std::string_view> names, last_parts;
  for (const Key& key : keys()) {
    names.push_back(key.name);
    last_parts.push_back(last_part(key.name));
  }
  if (const auto meant = closest(name, names); !meant.empty()) return meant;
  // The right word in the wrong table, perhaps misspelt as well.
  const auto meant = closest(last_part(name), last_parts);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!meant.empty() && last_parts[i] == meant) return names[i];
  return {};
}

}  // namespace troupe::train::internal
