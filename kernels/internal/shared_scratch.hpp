#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

/// Memory that the kernels of a network use one after the other, as large as the most that one of
/// them wants: what is in it lasts for one call of one kernel.
///
/// Threads: as the network that it belongs to.
class SharedScratch {
public:
  /// Before `allocate`: there will be so many bytes.
  void reserve(std::size_t bytes) noexcept { bytes_ = std::max(bytes_, bytes); }
  /// How many it takes.
  std::size_t reserved() const noexcept { return std::max<std::size_t>(bytes_, 1); }
  void take(Buffer buffer) noexcept { buffer_ = std::move(buffer); }
  std::byte* data() noexcept { return buffer_.data(); }
  std::size_t size() const noexcept { return buffer_.size(); }

private:
  std::size_t bytes_ = 0;
  Buffer buffer_;
};

/// The places that one kernel's call has in it.
class ScratchPlaces {
public:
  explicit ScratchPlaces(SharedScratch& scratch) noexcept : scratch_(&scratch) {}

  /// The offset of `bytes` more.
  std::size_t add(std::size_t bytes) noexcept {
    const std::size_t offset = used_;
    used_ += (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
    scratch_->reserve(used_);
    return offset;
  }
  /// What was added so far is not used together with what comes.
  void restart() noexcept { used_ = 0; }

  std::byte* at(std::size_t offset) const noexcept { return scratch_->data() + offset; }

private:
  SharedScratch* scratch_;
  std::size_t used_ = 0;
};

}  // namespace troupe::kernels
