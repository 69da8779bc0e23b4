#include "kernels/cpu/internal/channel_runs.hpp"

#include "kernels/cpu/internal/dnnl_support.hpp"

namespace troupe::kernels::cpu {

namespace {

/// Whether the axes behind the channels lie as a row-major array of `pixel` floats each.
bool is_row_major(const dnnl_memory_desc_t& desc, std::size_t pixel) {
  auto stride = static_cast<dnnl_dim_t>(pixel);
  for (int axis = desc.ndims; axis-- > 2;) {
    if (desc.format_desc.blocking.strides[axis] != stride) return false;
    stride *= desc.dims[axis];
  }
  return true;
}

}  // namespace

std::optional<ChannelRuns> channel_runs(const Activation& activation) {
  if (activation.layout == Activation::Layout::interleaved) return std::nullopt;
  const memory::desc description = describe_memory(activation);
  const dnnl_memory_desc_t& desc = description.data;
  if (desc.format_kind != dnnl_blocked || desc.ndims < 2 || desc.offset0 != 0) return std::nullopt;
  const auto& blocking = desc.format_desc.blocking;
  ChannelRuns runs;
  runs.batch = static_cast<std::size_t>(desc.dims[0]);
  runs.channels = static_cast<std::size_t>(desc.dims[1]);
  runs.area = 1;
  for (int axis = 2; axis < desc.ndims; ++axis)
    runs.area *= static_cast<std::size_t>(desc.dims[axis]);
  runs.image = static_cast<std::size_t>(blocking.strides[0]);
  const auto channel = static_cast<std::size_t>(blocking.strides[1]);
  if (blocking.inner_nblks == 1 && blocking.inner_idxs[0] == 1) {
    runs.width = runs.pixel = static_cast<std::size_t>(blocking.inner_blks[0]);
    runs.run = channel;
    runs.padded = true;
    if (runs.width > kMostChannelsInRun) return std::nullopt;
  } else if (blocking.inner_nblks != 0) {
    return std::nullopt;
  } else if (channel == 1 && runs.area > 1) {
    runs.width = std::min(runs.channels, kMostChannelsInRun);
    runs.pixel = runs.channels;
    runs.run = runs.width;
  } else {
    runs.run = channel;
  }
  if (!is_row_major(desc, runs.pixel)) return std::nullopt;
  return runs;
}

}  // namespace troupe::kernels::cpu
