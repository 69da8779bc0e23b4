#include "kernels/philox.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "kernels/internal/philox_rounds.hpp"
#include "kernels/internal/portable_math.hpp"

namespace troupe::kernels {

namespace {

constexpr std::uint32_t low(std::uint64_t x) noexcept {
  return static_cast<std::uint32_t>(x);
}
constexpr std::uint32_t high(std::uint64_t x) noexcept {
  return static_cast<std::uint32_t>(x >> 32);
}

}  // namespace

Philox::Block Philox::block(Key key, Block counter) noexcept {
  const PhiloxWords words =
      philox_rounds(key[0], key[1], {{counter[0], counter[1], counter[2], counter[3]}});
  return {words.word[0], words.word[1], words.word[2], words.word[3]};
}

Philox::Philox(std::uint64_t seed, std::initializer_list<std::uint64_t> stream) noexcept {
  PhiloxKey key = philox_key(seed);
  for (const std::uint64_t part : stream) key = philox_key(key, part);
  key_ = {key.word[0], key.word[1]};
}

std::uint32_t Philox::next() noexcept {
  if (used_ == current_.size()) {
    current_ = block(key_, {low(next_block_), high(next_block_), kPhiloxNumbers, 0});
    ++next_block_;
    used_ = 0;
  }
  return current_[used_++];
}

std::uint64_t Philox::next64() noexcept {
  const std::uint64_t first = next();
  return first | (std::uint64_t{next()} << 32);
}

std::uint64_t Philox::below(std::uint64_t bound) noexcept {
  TROUPE_CHECK(bound != 0, "Philox::below(0)");
  // Draws from the incomplete last run of [0, 2^64) are refused, so that no value is favoured.
  const std::uint64_t refused_below = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t draw = next64();
    if (draw >= refused_below) return draw % bound;
  }
}

float Philox::uniform() noexcept {
  return philox_uniform(next());
}

float Philox::uniform(float low_end, float high_end) noexcept {
  return low_end + (high_end - low_end) * uniform();
}

float Philox::normal() noexcept {
  // In (0, 1], since its logarithm is taken.
  const double radius_draw = (static_cast<double>(next64() >> 11) + 1.0) * 0x1p-53;
  const double angle_draw = static_cast<double>(next64() >> 11) * 0x1p-53;
  return static_cast<float>(std::sqrt(-2.0 * portable_log(radius_draw)) *
                            portable_cos_turns(angle_draw));
}

void Philox::seek(std::uint64_t block_index) noexcept {
  next_block_ = block_index;
  used_ = 4;
}

Result<std::vector<std::uint32_t>> permutation(std::uint64_t n, std::uint64_t seed,
                                               std::uint64_t epoch) {
  if (n >> 32 != 0)
    return Error{Code::invalid_argument,
                 fmt::format("a permutation of {} samples; at most 2^32 - 1 are supported", n)};
  constexpr std::uint64_t kPermutationStream = 0x7065726d75746174;  // "permutat"
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  Philox random(seed, {kPermutationStream, epoch});
  for (std::uint64_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace troupe::kernels
