#include "kernels/internal/arena.hpp"

#include <algorithm>
#include <numeric>

#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

std::size_t ArenaPlan::add(std::size_t bytes, std::size_t first) {
  const std::size_t rounded =
      (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
  blocks_.push_back({rounded, first, first});
  return blocks_.size() - 1;
}

void ArenaPlan::use(std::size_t block, std::size_t time) {
  blocks_[block].first = std::min(blocks_[block].first, time);
  blocks_[block].last = std::max(blocks_[block].last, time);
}

void ArenaPlan::place() {
  std::vector<std::size_t> order(blocks_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
  std::vector<const Block*> placed;  // by offset
  size_ = 0;
  for (const std::size_t index : order) {
    Block& block = blocks_[index];
    std::size_t offset = 0;
    for (const Block* other : placed) {
      if (other->last < block.first || block.last < other->first) continue;
      if (offset + block.bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    block.offset = offset;
    size_ = std::max(size_, offset + block.bytes);
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Block::offset), &block);
  }
}

}  // namespace troupe::kernels
