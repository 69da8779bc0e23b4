#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/data/internal/file.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train::internal {

/// A regular file in a tar file.
struct TarEntry {
  std::string name;
  std::uint64_t header = 0;  ///< where its header is, for errors
  std::uint64_t offset = 0;  ///< of its bytes
  std::uint64_t size = 0;    ///< which the tar file has
};

/// Goes through a tar file's headers: POSIX ustar, with the long names and sizes of GNU and pax.
/// Folders, links and the like are left out.
///
/// Ownership: borrows the file. Threads: one at a time.
class TarReader {
public:
  explicit TarReader(const File& file) : file_(file) {}

  /// The next entry; none at the end.
  /// Errors: `corrupt_data` naming file and byte for a header that is none, or an entry that goes
  /// on behind the file's end; `io_error`.
  Result<std::optional<TarEntry>> next();

private:
  Error damaged(std::string_view what) const;
  /// The content of an entry that is about the next one.
  Result<std::string> read_text(std::uint64_t size);
  Status read_pax(std::uint64_t size);

  const File& file_;
  std::uint64_t at_ = 0;  // of the next header
  std::string long_name_;
  std::optional<std::uint64_t> long_size_;
};

}  // namespace troupe::train::internal
