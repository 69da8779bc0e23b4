#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "actors/checkpoint/file_system.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// Writes `parts`, one after the other, so that `file` is at any moment, whatever fails, either
/// what it was or all of the new content: a temporary file beside it, synced, renamed, and the
/// folder synced. Failure: `io_error` with the system's reason; the temporary file is removed if
/// that is possible.
Status write_atomically(FileSystem& files, const std::filesystem::path& file,
                        std::span<const std::span<const std::byte>> parts);

/// Removes the temporary files that writers which died left in `directory`. Only while nobody
/// writes there.
Status remove_temporaries(FileSystem& files, const std::filesystem::path& directory);

}  // namespace troupe::train
