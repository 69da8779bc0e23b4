#pragma once

#include <cstdint>

#include "kernels/host_device.hpp"

namespace troupe::kernels {

/// Four numbers of Philox 4x32-10, or the counter that they come from.
struct PhiloxWords {
  std::uint32_t word[4];
};

/// What the third word of a counter says, so that a stream's name never meets its numbers.
inline constexpr std::uint32_t kPhiloxNumbers = 0;
inline constexpr std::uint32_t kPhiloxName = 1;

/// The bijection of kernels/philox.hpp.
TROUPE_HOST_DEVICE inline PhiloxWords philox_rounds(std::uint32_t key0, std::uint32_t key1,
                                                    PhiloxWords counter) noexcept {
  // Constants of the paper's section 3.3: multipliers, and Weyl increments for the key.
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter.word[0];
    const std::uint64_t product1 = kMultiplier1 * counter.word[2];
    counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0,
                static_cast<std::uint32_t>(product1),
                static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1,
                static_cast<std::uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

struct PhiloxKey {
  std::uint32_t word[2];
};

/// The key of a seed's own stream; and that of the stream which `name` is one more part of the name
/// of.
TROUPE_HOST_DEVICE inline PhiloxKey philox_key(std::uint64_t seed) noexcept {
  return {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
}
TROUPE_HOST_DEVICE inline PhiloxKey philox_key(PhiloxKey key, std::uint64_t name) noexcept {
  const PhiloxKey part = philox_key(name);
  const PhiloxWords words =
      philox_rounds(key.word[0], key.word[1], {{part.word[0], part.word[1], kPhiloxName, 0}});
  return {{words.word[0], words.word[1]}};
}

/// What Philox::uniform makes of a number.
TROUPE_HOST_DEVICE inline float philox_uniform(std::uint32_t number) noexcept {
  return static_cast<float>(number >> 8) * 0x1p-24f;
}

}  // namespace troupe::kernels
