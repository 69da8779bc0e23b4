#pragma once

#include <cstddef>

#include "kernels/host_device.hpp"

namespace troupe::kernels::cuda {

/// Lanes that go through a row together: the threads of a block on the device, a loop on the host.
///
/// Both add in one order, so that both give the same bits: lane l takes the elements l, l + kLanes,
/// l + 2 kLanes, ... first to last, and then the upper half of the lanes is added to the lower one
/// until one is left. All lanes must come to each call.
class Group {
public:
  static constexpr std::size_t kLanes = 256;

  /// `lanes` are kLanes numbers that all lanes see.
  explicit TROUPE_HOST_DEVICE Group(double* lanes) : lanes_(lanes) {}

  /// The sum of term(i) over i < n, in the type that it gives.
  template <class Term>
  TROUPE_HOST_DEVICE auto sum(std::size_t n, const Term& term) {
    using T = decltype(term(std::size_t{0}));
    each_lane(kLanes, [&](std::size_t lane) {
      T sum = 0;
      for (std::size_t i = lane; i < n; i += kLanes) sum += term(i);
      lanes_[lane] = sum;  // a float stays what it is
    });
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
      each_lane(half, [&](std::size_t lane) {
        lanes_[lane] = static_cast<T>(lanes_[lane]) + static_cast<T>(lanes_[lane + half]);
      });
    return result<T>();
  }

  /// The greatest x[i] of at least one; what it is with a NaN among them is not said.
  TROUPE_HOST_DEVICE float greatest(const float* x, std::size_t n) {
    each_lane(kLanes, [&](std::size_t lane) {
      float best = x[lane < n ? lane : 0];
      for (std::size_t i = lane; i < n; i += kLanes) best = x[i] > best ? x[i] : best;
      lanes_[lane] = best;
    });
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
      each_lane(half, [&](std::size_t lane) {
        if (lanes_[lane + half] > lanes_[lane]) lanes_[lane] = lanes_[lane + half];
      });
    return result<float>();
  }

  /// Calls body(i) for each i < n; what it wrote is there for all lanes afterwards.
  template <class Body>
  TROUPE_HOST_DEVICE void each(std::size_t n, const Body& body) {
    each_lane(kLanes, [&](std::size_t lane) {
      for (std::size_t i = lane; i < n; i += kLanes) body(i);
    });
  }

  /// Calls body() on one lane.
  template <class Body>
  TROUPE_HOST_DEVICE void once(const Body& body) {
    each_lane(1, [&](std::size_t) { body(); });
  }

private:
  /// body(lane) for the first `n` lanes, after which all see what was written.
  template <class Body>
  TROUPE_HOST_DEVICE void each_lane(std::size_t n, const Body& body) {
#ifdef __CUDA_ARCH__
    if (threadIdx.x < n) body(static_cast<std::size_t>(threadIdx.x));
    __syncthreads();
#else
    for (std::size_t lane = 0; lane < n; ++lane) body(lane);
#endif
  }

  template <class T>
  TROUPE_HOST_DEVICE T result() {
    const T first = static_cast<T>(lanes_[0]);
    each_lane(0, [](std::size_t) {});  // all have read it before the next call writes there
    return first;
  }

  double* lanes_;
};

}  // namespace troupe::kernels::cuda
