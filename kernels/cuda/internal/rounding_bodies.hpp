#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/host_device.hpp"
#include "kernels/short_floats.hpp"

// Factors of products in 16 bits, and channels of images last in memory and back.
namespace troupe::kernels::cuda {

struct Bf16 {
  TROUPE_HOST_DEVICE static std::uint16_t bits(float x) { return bf16_bits(x); }
};
struct F16 {
  TROUPE_HOST_DEVICE static std::uint16_t bits(float x) { return f16_bits(x); }
};

/// Channels of one pixel that one lane goes through, in one access. Lanes side by side go through
/// pixels side by side, whose channels first in memory are side by side too.
inline constexpr std::size_t kChannelRun = 8;
template <class T>
struct alignas(16) ChannelRun {
  T value[kChannelRun];
};

/// Images [samples, channels, area] and the same with channels last, [all_samples, area,
/// all_channels]; what is more there than here is zeros. `all_channels` is a multiple of
/// kChannelRun.
struct ChannelSizes {
  std::size_t samples, channels, area;
  std::size_t all_samples, all_channels;

  TROUPE_HOST_DEVICE std::size_t runs_of_pixel() const { return all_channels / kChannelRun; }
  TROUPE_HOST_DEVICE std::size_t runs_of(std::size_t samples_) const {
    return samples_ * runs_of_pixel() * area;
  }
};

/// Where run i is: of a sample, from a channel on, of a pixel.
struct RunPlace {
  std::size_t sample, channel, pixel;
  TROUPE_HOST_DEVICE RunPlace(std::size_t i, const ChannelSizes& sizes)
      : sample(i / sizes.area / sizes.runs_of_pixel()),
        channel(i / sizes.area % sizes.runs_of_pixel() * kChannelRun),
        pixel(i % sizes.area) {}
  TROUPE_HOST_DEVICE std::size_t first(const ChannelSizes& sizes) const {
    return (sample * sizes.channels + channel) * sizes.area + pixel;
  }
  TROUPE_HOST_DEVICE std::size_t last(const ChannelSizes& sizes) const {
    return ((sample * sizes.area + pixel) * sizes.all_channels + channel) / kChannelRun;
  }
};

/// Channels last, rounded to Type: sizes.runs_of(sizes.all_samples) runs.
template <class Type>
struct RoundToChannelsLast {
  ChannelSizes sizes;
  const float* from;
  std::uint16_t* to;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const RunPlace at(i, sizes);
    const float* const x = from + at.first(sizes);
    ChannelRun<std::uint16_t> run;
    for (std::size_t k = 0; k < kChannelRun; ++k) {
      const bool is_there = at.sample < sizes.samples && at.channel + k < sizes.channels;
      run.value[k] = is_there ? Type::bits(x[k * sizes.area]) : std::uint16_t{0};
    }
    reinterpret_cast<ChannelRun<std::uint16_t>*>(to)[at.last(sizes)] = run;
  }
};

/// Back to row-major, with `bias` of each channel added unless it is null:
/// sizes.runs_of(sizes.samples) runs.
struct FromChannelsLast {
  ChannelSizes sizes;
  const float* from;
  const float* bias;
  float* to;
  TROUPE_HOST_DEVICE void operator()(std::size_t i) const {
    const RunPlace at(i, sizes);
    float* const y = to + at.first(sizes);
    const ChannelRun<float> run = reinterpret_cast<const ChannelRun<float>*>(from)[at.last(sizes)];
    for (std::size_t k = 0; k < kChannelRun && at.channel + k < sizes.channels; ++k)
      y[k * sizes.area] = bias == nullptr ? run.value[k] : run.value[k] + bias[at.channel + k];
  }
};

}  // namespace troupe::kernels::cuda

#define TROUPE_ROUNDING_BODIES(each)                                               \
  each(troupe::kernels::cuda::RoundToChannelsLast<troupe::kernels::cuda::Bf16>)    \
      each(troupe::kernels::cuda::RoundToChannelsLast<troupe::kernels::cuda::F16>) \
          each(troupe::kernels::cuda::FromChannelsLast)
