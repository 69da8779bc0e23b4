#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/checkpoint/file_system.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::train {

// Tensors in a file, in the safetensors format (github.com/huggingface/safetensors): the length of
// the header as eight bytes, little-endian, the header as JSON, the data. What Troupe writes has
// the same bytes for the same tensors and metadata, and a checksum over all of it in the metadata.

/// A named tensor whose bytes lie elsewhere. `dtype` is as the format calls it: "F32", "I32", "U8".
struct TensorView {
  std::string name;
  std::string dtype = "F32";
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;  ///< row-major, little-endian
};

using Metadata = std::map<std::string, std::string>;

/// Metadata key of the checksum; "xxh3-128:" and 32 hex digits.
inline constexpr std::string_view kChecksumKey = "troupe.checksum";

/// A file that was read and checked.
struct TensorFile {
  Metadata metadata;                ///< without the checksum
  std::vector<TensorView> tensors;  ///< by name; they point into `storage`
  Buffer storage;

  /// Null if there is none of that name.
  const TensorView* find(std::string_view name) const;
};

/// Bytes of one element, 0 for a type that the format does not know.
std::size_t dtype_size(std::string_view dtype) noexcept;

/// What stands in front of the data, length and checksum included. The data follows in the order of
/// `tensors`, which this sorts: wide types first, so that each is aligned, then by name.
/// Errors: `invalid_argument` (a name twice, bytes that do not fit type and shape), naming it.
Result<std::string> encode_header(std::vector<TensorView>& tensors, const Metadata& metadata);

enum class Checksum { required, if_present };

/// Checks all of `file`, which is not trusted: every size, every offset, no gap or overlap, and the
/// checksum. `name` is what errors call it.
/// Errors: `corrupt_data` with what is wrong.
Result<TensorFile> decode_safetensors(Buffer file, std::string_view name,
                                      Checksum checksum = Checksum::required);

/// From a file. Errors: `not_found`, `io_error`, and those of decode_safetensors.
Result<TensorFile> read_safetensors(FileSystem& files, const std::filesystem::path& file,
                                    Checksum checksum = Checksum::required);

struct WrittenFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::string sha256;  ///< of the whole file, as sha256sum prints it
};

/// Writes a file whole or not at all (write_atomically).
Result<WrittenFile> write_safetensors(FileSystem& files, const std::filesystem::path& file,
                                      std::vector<TensorView> tensors, const Metadata& metadata);

}  // namespace troupe::train
