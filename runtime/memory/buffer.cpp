#include "runtime/memory/buffer.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include <fmt/format.h>

namespace troupe {

std::string_view to_string(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::host:
      return "host";
    case MemoryKind::pinned:
      return "pinned";
    case MemoryKind::shared:
      return "shared";
    case MemoryKind::cuda:
      return "cuda";
    case MemoryKind::simulated:
      return "simulated";
  }
  return "unknown";
}

Result<Buffer> Buffer::allocate(std::size_t bytes) {
  if (bytes == 0) return Buffer{};
  auto* data =
      static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
  if (data == nullptr)
    return Error{Code::resource_exhausted,
                 fmt::format("no host memory for a buffer of {} bytes", bytes)};
  auto free_it = [](std::byte* p) { ::operator delete (p, std::align_val_t{kAlignment}); };
  return wrap(std::shared_ptr<std::byte>(data, free_it), data, bytes);
}

Buffer Buffer::wrap(std::shared_ptr<void> owner, std::byte* data, std::size_t bytes,
                    MemoryKind kind) {
  Buffer buffer;
  buffer.owner_ = std::move(owner);
  buffer.data_ = data;
  buffer.size_ = bytes;
  buffer.kind_ = kind;
  return buffer;
}

Result<Buffer> Buffer::copy_of(std::span<const std::byte> bytes) {
  TROUPE_ASSIGN(auto buffer, allocate(bytes.size()));
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

Buffer Buffer::slice(std::size_t offset, std::size_t size) const {
  TROUPE_CHECK(offset <= size_ && size <= size_ - offset,
               fmt::format("slice {}+{} of a buffer of {} bytes", offset, size, size_));
  Buffer part = *this;
  part.data_ = data_ == nullptr ? nullptr : data_ + offset;
  part.size_ = size;
  return part;
}

}  // namespace troupe
