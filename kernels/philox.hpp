#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// Random numbers as a pure function of (seed, stream, position): Philox 4x32-10.
///
/// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), section
/// 3.3. A stream is named by any list of numbers, say (step, rank, layer); different names give
/// independent streams, so that no generator's state is ever saved or sent. The same on every
/// machine.
///
/// Threads: a value type; one thread at a time.
class Philox {
public:
  using Block = std::array<std::uint32_t, 4>;
  using Key = std::array<std::uint32_t, 2>;

  /// The bijection itself: ten rounds over `counter` under `key`.
  static Block block(Key key, Block counter) noexcept;

  /// The stream of a key().
  explicit Philox(Key key) noexcept : key_(key) {}
  explicit Philox(std::uint64_t seed, std::initializer_list<std::uint64_t> stream = {}) noexcept;

  /// Block i of the stream is block(key(), {low 32 bits of i, high 32 bits, 0, 0}).
  const Key& key() const noexcept { return key_; }

  /// The next 32 and 64 bits.
  std::uint32_t next() noexcept;
  std::uint64_t next64() noexcept;
  /// Uniform in [0, bound) without bias; `bound` must not be 0.
  std::uint64_t below(std::uint64_t bound) noexcept;
  /// Uniform in [0, 1), a multiple of 2^-24 (exact in float).
  float uniform() noexcept;
  /// Uniform in [low, high) up to rounding.
  float uniform(float low, float high) noexcept;
  /// Normal with mean 0 and deviation 1 (Box and Muller; uses two draws of 64 bits in all).
  float normal() noexcept;

  /// Continues at the `block_index`-th block of four 32-bit numbers of the stream.
  void seek(std::uint64_t block_index) noexcept;

private:
  Key key_;
  std::uint64_t next_block_ = 0;
  Block current_{};
  unsigned used_ = 4;
};

/// The numbers 0..n-1 in an order that is a pure function of (seed, epoch): Fisher and Yates'
/// shuffle. Errors: `invalid_argument` for n of 2^32 and more.
Result<std::vector<std::uint32_t>> permutation(std::uint64_t n, std::uint64_t seed,
                                               std::uint64_t epoch);

}  // namespace troupe::kernels
