#include "actors/data/internal/content_hash.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

// Its functions here, not from a library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace troupe::train::internal {
namespace {

constexpr std::uint64_t kBlock = std::uint64_t{64} << 10;

}  // namespace

struct ContentHash::State {
  XXH3_state_t xxh;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}
ContentHash::~ContentHash() = default;

void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

void ContentHash::add(std::uint64_t number) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(number >> (8 * i));
  add(bytes);
}

void ContentHash::add(std::string_view text) {
  add(std::uint64_t{text.size()});
  add(std::as_bytes(std::span(text)));
}

Status ContentHash::add_sampled(const File& file, std::uint64_t budget) {
  add(file.size());
  std::vector<std::byte> block(static_cast<std::size_t>(std::min(kBlock, file.size())));
  if (file.size() <= std::max(budget, 2 * kBlock)) {
    for (std::uint64_t at = 0; at < file.size(); at += kBlock) {
      const auto part =
          std::span(block).first(static_cast<std::size_t>(std::min(kBlock, file.size() - at)));
      TROUPE_TRY(file.read_exactly(at, part));
      add(part);
    }
    return {};
  }
  const std::uint64_t blocks = std::max<std::uint64_t>(2, budget / kBlock);
  const std::uint64_t last = file.size() - kBlock;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    // The first block begins the file and the last one ends it.
    const std::uint64_t at = last / (blocks - 1) * i;
    TROUPE_TRY(file.read_exactly(i + 1 == blocks ? last : at, block));
    add(block);
  }
  return {};
}

std::string ContentHash::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace troupe::train::internal
