#pragma once

#include <cstdint>

#include "kernels/host_device.hpp"
#include "kernels/internal/philox_rounds.hpp"
#include "kernels/pass_key.hpp"

namespace troupe::kernels {

/// What tells a dropout's numbers from all others of a seed.
inline constexpr std::uint64_t kDropoutStream = 0x64726f706f757421;  // "dropout!"

/// The key of Philox(pass.seed, {kDropoutStream, pass.step, pass.rank, layer}): a dropout draws a
/// number of it for each element.
TROUPE_HOST_DEVICE inline PhiloxKey dropout_key(const PassKey& pass, std::uint64_t layer) noexcept {
  PhiloxKey key = philox_key(pass.seed);
  key = philox_key(key, kDropoutStream);
  key = philox_key(key, pass.step);
  key = philox_key(key, pass.rank);
  return philox_key(key, layer);
}

}  // namespace troupe::kernels
