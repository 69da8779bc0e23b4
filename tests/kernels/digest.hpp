#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/workspace.hpp"

namespace troupe::kernels {

/// The hash (FNV-1a of the bytes) of some floats.
std::uint64_t digest_of(std::span<const float> values);

/// Trains LeNet-5 for a few steps on random samples, all from fixed seeds, and gives the hash of
/// the weights that come out.
std::uint64_t digest_of_training(KernelChoice kernels);

}  // namespace troupe::kernels
