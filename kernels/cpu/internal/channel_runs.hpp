#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "kernels/internal/layer_kernel.hpp"

namespace troupe::kernels::cpu {

/// Channels that lie side by side at each pixel of an image.
inline constexpr std::size_t kMostChannelsInRun = 16;

/// How the channels of images [batch, channels, ...] lie: runs of `width` channels side by side
/// (the last may be shorter), with `pixel` floats between the pixels of a run. Plain images have
/// runs of one.
struct ChannelRuns {
  std::size_t batch = 0, channels = 0, area = 0;
  std::size_t width = 1;  ///< channels of a run; at most kMostChannelsInRun
  std::size_t pixel = 1;  ///< floats from a pixel to the next
  std::size_t image = 0;  ///< and from an image
  std::size_t run = 0;    ///< and from a run
  bool padded = false;    ///< whether the last run has zeros up to its width

  std::size_t count() const { return (channels + width - 1) / width; }
  std::size_t first_channel(std::size_t i) const { return i * width; }
  /// Channels of run i that are there.
  std::size_t channels_in(std::size_t i) const { return std::min(width, channels - i * width); }
  /// And those that it has floats for.
  std::size_t floats_in(std::size_t i) const { return padded ? width : channels_in(i); }
};

/// None for layouts that are neither plain, channels last, nor blocked by up to 16 channels.
std::optional<ChannelRuns> channel_runs(const Activation& activation);

}  // namespace troupe::kernels::cpu
