#include "actors/checkpoint/internal/checksum.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <memory>

#include <xxhash.h>

#include "actors/checkpoint/safetensors.hpp"

namespace troupe::train::internal {

std::string blank_checksum() {
  return std::string(kChecksumPrefix) + std::string(32, '0');
}

std::string checksum_of(std::span<const std::span<const std::byte>> parts) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  TROUPE_CHECK(state != nullptr, "no memory for a hash");
  XXH3_128bits_reset(state.get());
  for (const auto& part : parts) XXH3_128bits_update(state.get(), part.data(), part.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{}{:016x}{:016x}", kChecksumPrefix, hash.high64, hash.low64);
}

std::size_t find_checksum(std::string_view json, std::string_view value) {
  // A quote inside a JSON string has a backslash before it, so this text is the key itself.
  const std::string before = fmt::format("\"{}\":\"", kChecksumKey);
  const auto at = json.find(before + std::string(value) + '"');
  return at == std::string_view::npos ? at : at + before.size();
}

}  // namespace troupe::train::internal
