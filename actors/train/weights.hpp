#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "actors/checkpoint/safetensors.hpp"
#include "kernels/parameters.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

// A model's weights in files that PyTorch reads and writes: safetensors with the names and shapes
// of the published models ("layer1.0.conv1.weight" [64, 64, 3, 3]).

/// Values of a parameter as a tensor of a file, whose name may begin with more.
TensorView view_of(const kernels::ParameterInfo& info, std::span<const std::byte> values,
                   std::string_view prefix = "");

/// Takes the weights of `file` for `parameters`: each by its name, in F32, F16 or BF16. Other
/// tensors of the file ("optimizer.", "bn1.num_batches_tracked") are passed over.
///
/// Errors: those of read_safetensors; `invalid_argument` naming the first tensor that is missing or
/// of another shape or type, with the parameters unchanged.
Status load_weights(FileSystem& files, const std::filesystem::path& file,
                    kernels::Parameters& parameters);

/// Writes the weights as F32, and for each batch norm what else PyTorch's state_dict has:
/// `NAME.num_batches_tracked` (I64), the `steps` that its statistics have seen. Errors: those of
/// write_safetensors.
Result<WrittenFile> save_weights(FileSystem& files, const std::filesystem::path& file,
                                 const kernels::Parameters& parameters, std::uint64_t steps,
                                 const Metadata& metadata = {});

}  // namespace troupe::train
