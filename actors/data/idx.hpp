#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::train {

/// An array of unsigned bytes from an IDX file, row-major.
struct IdxArray {
  std::vector<std::uint32_t> shape;
  Buffer data;
};

struct IdxLimits {
  std::uint64_t max_bytes = std::uint64_t{64} << 30;  ///< of data; a larger array is refused
};

/// Reads an IDX file (yann.lecun.com/exdb/mnist) of unsigned bytes, gzipped or not, whichever its
/// first bytes say. The size that the header claims is checked against the limit and against what
/// the file can hold before memory is taken, and the file must end where the data does.
/// Errors: `not_found`, `io_error`, `corrupt_data`, `resource_exhausted`; the sentence names the
/// file, what is wrong and at which byte.
Result<IdxArray> read_idx(const std::filesystem::path& file, const IdxLimits& limits = {});

}  // namespace troupe::train
