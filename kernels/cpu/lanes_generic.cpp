#include <cmath>

#include "kernels/cpu/internal/lanes.hpp"

namespace troupe::kernels::cpu {

namespace {

// Slow where the CPU cannot fuse a product and a sum, but the same bits.
struct Vector {
  float lane[8];
};
struct Mask {
  bool lane[8];
};
struct Chosen {
  int lane[8];
};

template <class Result, class Function>
Result each_lane(Function function) {
  Result result;
  for (int n = 0; n < 8; ++n) result.lane[n] = function(n);
  return result;
}

Vector load(const float* from) {
  return each_lane<Vector>([&](int n) { return from[n]; });
}
void store(float* to, const Vector& v) {
  for (int n = 0; n < 8; ++n) to[n] = v.lane[n];
}
Vector broadcast(float value) {
  return each_lane<Vector>([&](int) { return value; });
}
Vector zero() {
  return broadcast(0.0f);
}
Vector fma(const Vector& a, const Vector& b, const Vector& sum) {
  return each_lane<Vector>([&](int n) { return std::fma(a.lane[n], b.lane[n], sum.lane[n]); });
}
Vector add(const Vector& a, const Vector& b) {
  return each_lane<Vector>([&](int n) { return a.lane[n] + b.lane[n]; });
}
Mask greater_or_nan(const Vector& a, const Vector& b) {
  return each_lane<Mask>([&](int n) { return a.lane[n] > b.lane[n] || std::isnan(a.lane[n]); });
}
Mask positive_or_nan(const Vector& a) {
  return each_lane<Mask>([&](int n) { return !(a.lane[n] <= 0.0f); });
}
Mask equal(const Chosen& a, const Chosen& b) {
  return each_lane<Mask>([&](int n) { return a.lane[n] == b.lane[n]; });
}
template <class T>
T select(const Mask& mask, const T& a, const T& b) {
  return each_lane<T>([&](int n) { return mask.lane[n] ? a.lane[n] : b.lane[n]; });
}
Chosen chosen_constant(int value) {
  return each_lane<Chosen>([&](int) { return value; });
}
Chosen load_chosen(const std::uint8_t* from) {
  return each_lane<Chosen>([&](int n) { return from[n]; });
}
void store_chosen(std::uint8_t* to, const Chosen& chosen) {
  for (int n = 0; n < 8; ++n) to[n] = static_cast<std::uint8_t>(chosen.lane[n]);
}
void transpose(Vector (&rows)[8]) {
  for (int i = 0; i < 8; ++i)
    for (int j = i + 1; j < 8; ++j) {
      const float other = rows[i].lane[j];
      rows[i].lane[j] = rows[j].lane[i];
      rows[j].lane[i] = other;
    }
}

#include "kernels/cpu/internal/lane_loops.ipp"

}  // namespace

const LaneLoops& generic_lane_loops() noexcept {
  return kLoops;
}

const LaneLoops& lane_loops() noexcept {
  const LaneLoops* const fast = avx2_lane_loops();
  return fast != nullptr ? *fast : generic_lane_loops();
}

Index Correlation::columns_needed() const {
  if (padding <= 0 && (out_width - 1) * stride - padding + kernel <= x.width) return 0;
  // A piece's first column may be this far outside while its last one is inside.
  return (kMaxColumns - 1) * stride > padding ? (kMaxColumns - 1) * stride : padding;
}

}  // namespace troupe::kernels::cpu
