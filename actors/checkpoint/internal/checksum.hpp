#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::train::internal {

inline constexpr std::string_view kChecksumPrefix = "xxh3-128:";

/// In place of the digits while they are not known: what the checksum is computed over.
std::string blank_checksum();

/// XXH3-128 over `parts`, one after the other, with its prefix.
std::string checksum_of(std::span<const std::span<const std::byte>> parts);

/// Where in a header's JSON the checksum `value` stands, npos if not exactly as we write it.
std::size_t find_checksum(std::string_view json, std::string_view value);

}  // namespace troupe::train::internal
