#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace troupe {

/// The numbers of nodes that the tests of scale take: 10, 100, 1,000, and not more than
/// TROUPE_SCALE_MOST, as sanitizers take a hundred times as long.
inline std::vector<std::uint32_t> scale_sizes() {
  const char* const text = std::getenv("TROUPE_SCALE_MOST");
  const std::uint64_t most = text != nullptr ? std::strtoull(text, nullptr, 10) : 1000;
  std::vector<std::uint32_t> sizes{10, 100, 1000};
  std::erase_if(sizes, [most](std::uint32_t n) { return n > most; });
  return sizes;
}

}  // namespace troupe
