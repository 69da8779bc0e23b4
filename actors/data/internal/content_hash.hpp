#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "actors/data/internal/file.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train::internal {

/// XXH3-128 over whatever is added, in this order.
///
/// Threads: one at a time.
class ContentHash {
public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void add(std::span<const std::byte> bytes);
  /// Eight bytes, little-endian.
  void add(std::uint64_t number);
  /// The length, then the text: so that "ab", "c" is not "a", "bc".
  void add(std::string_view text);
  /// The size of a file, and all of it if it has at most `budget` bytes; of a larger one blocks of
  /// 64 KiB at equal distances from its first to its last, about so many bytes in all.
  /// Errors: as File::read_exactly.
  Status add_sampled(const File& file, std::uint64_t budget);

  /// 32 hex digits.
  std::string hex() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::train::internal
