#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "runtime/base/status.hpp"

namespace troupe::train::internal {

/// The bytes of a file from its start to its end, unpacked if it is gzipped.
///
/// Failure: `io_error` and `corrupt_data`; sentences name the file and the byte.
class ByteSource {
public:
  virtual ~ByteSource() = default;
  /// Fills `out`; fewer bytes mean the end. The end of a gzipped file has been checked by then.
  virtual Result<std::size_t> read(std::span<std::byte> out) = 0;
  /// The most bytes that can come in all. Known from the file's size, before anything is read.
  virtual std::uint64_t max_bytes() const = 0;
  /// What offsets count: "" for the file's own bytes, " unpacked" for what they unpack to.
  virtual const char* unit() const = 0;
};

/// Opens a file; gzip is told by its first two bytes.
/// Errors: `not_found`, `io_error`, `corrupt_data` if it is empty.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& file);

}  // namespace troupe::train::internal
