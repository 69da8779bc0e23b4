#pragma once

#include <cstdint>

namespace troupe::kernels {

/// What a pass draws its random numbers by (dropout): passes of one key draw the same ones, on
/// every machine and with any number of threads.
struct PassKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t rank = 0;

  bool operator==(const PassKey&) const = default;
};

}  // namespace troupe::kernels
