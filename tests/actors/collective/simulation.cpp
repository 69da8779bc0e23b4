#include "tests/actors/collective/simulation.hpp"

#include <cmath>
#include <cstring>

namespace troupe::collective {

std::vector<float> draw_values(std::mt19937_64& random, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) {
    const auto bits = random();
    const auto mantissa = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
    value = std::ldexp(mantissa, static_cast<int>((bits >> 40) % 24) - 12);
  }
  return values;
}

std::vector<float> naive_sum(RankRange range, std::span<const std::vector<float>> by_rank) {
  if (range.size() == 1) return by_rank[range.begin];
  std::uint32_t half = 1;
  while (half * 2 < range.size()) half *= 2;
  auto left = naive_sum({range.begin, range.begin + half}, by_rank);
  const auto right = naive_sum({range.begin + half, range.end}, by_rank);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

Buffer to_buffer(std::span<const float> values) {
  return *Buffer::copy_of(std::as_bytes(values));
}

std::vector<float> to_floats(const Buffer& buffer) {
  std::vector<float> values(buffer.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), buffer.data(), buffer.size());
  return values;
}

void Recorder::slice_done(std::uint64_t step, std::uint32_t slice, Buffer sum) {
  slices[{step, slice}] = std::move(sum);
}
void Recorder::bucket_done(std::uint64_t step, std::uint32_t bucket, Buffer sum) {
  buckets[{step, bucket}] = std::move(sum);
}
void Recorder::step_done(std::uint64_t step, std::vector<double> extras) {
  steps.push_back({step, std::move(extras)});
}

}  // namespace troupe::collective
