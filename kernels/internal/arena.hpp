#pragma once

#include <cstddef>
#include <vector>

namespace troupe::kernels {

/// Packs blocks of memory that are needed at different times into one.
///
/// Times are points of a fixed order of events; two blocks overlap in memory only if one's last use
/// is before the other's first. Larger blocks are placed first, each at the lowest place that is
/// free for its time (Pisarchyk, Lee, "Efficient memory management for deep neural net inference",
/// 2020: "greedy by size"). Deterministic.
class ArenaPlan {
public:
  /// A block of `bytes` that is used from `first` on.
  std::size_t add(std::size_t bytes, std::size_t first);
  /// The block is used at `time` too.
  void use(std::size_t block, std::size_t time);

  void place();
  std::size_t bytes(std::size_t block) const { return blocks_[block].bytes; }
  std::size_t offset(std::size_t block) const { return blocks_[block].offset; }  ///< after place()
  std::size_t size() const { return size_; }                                     ///< after place()

private:
  struct Block {
    std::size_t bytes;
    std::size_t first;
    std::size_t last;
    std::size_t offset = 0;
  };

  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

}  // namespace troupe::kernels
