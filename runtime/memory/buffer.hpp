#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/base/status.hpp"

namespace troupe {

/// Where bytes live. The numbers go on the wire.
enum class MemoryKind : std::uint8_t {
  host = 0,       ///< ordinary pageable memory
  pinned = 1,     ///< page-locked host memory, for asynchronous copies to a device
  shared = 2,     ///< mapped by several processes of one host
  cuda = 3,       ///< on a CUDA device; the host must not touch it
  simulated = 4,  ///< on a simulated device; the host cannot touch it
};
std::string_view to_string(MemoryKind kind) noexcept;
/// Whether the host must not touch it.
constexpr bool on_device(MemoryKind kind) noexcept {
  return kind == MemoryKind::cuda || kind == MemoryKind::simulated;
}

/// A ref-counted run of bytes: what tensors are stored in and what the transport sends uncopied.
///
/// Ownership: copies share the bytes; the last one gives them back to where they came from (the
///            heap, a BufferPool, or whatever `wrap` was told). A slice keeps the whole alive.
/// Threads:   handles may be copied on any thread. The bytes are as safe as the program makes
///            them: once a buffer was sent or shared it is read-only until `unique()` again.
/// Invariant: host memory is aligned to kAlignment at the start of an allocation.
class Buffer {
public:
  static constexpr std::size_t kAlignment = 64;

  /// Empty: no bytes, `data()` is null.
  Buffer() = default;

  /// Uninitialised host memory. Errors: `resource_exhausted` with the size that was asked.
  static Result<Buffer> allocate(std::size_t bytes);

  /// Borrows bytes that `owner` keeps alive.
  static Buffer wrap(std::shared_ptr<void> owner, std::byte* data, std::size_t bytes,
                     MemoryKind kind = MemoryKind::host);

  /// A copy of `bytes` in fresh host memory.
  static Result<Buffer> copy_of(std::span<const std::byte> bytes);

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  MemoryKind kind() const noexcept { return kind_; }

  std::span<std::byte> bytes() noexcept { return {data_, size_}; }
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  /// True if no other handle (slices included) holds the bytes. Exact only if no other thread is
  /// copying a handle at this moment.
  bool unique() const noexcept { return owner_.use_count() == 1; }

  /// `size` bytes from `offset`; must lie inside.
  Buffer slice(std::size_t offset, std::size_t size) const;

private:
  std::shared_ptr<void> owner_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  MemoryKind kind_ = MemoryKind::host;
};

}  // namespace troupe
