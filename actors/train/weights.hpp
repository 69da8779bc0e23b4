#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/checkpoint/safetensors.hpp"
#include "actors/train/weights_layout.hpp"
#include "kernels/parameters.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::train {

// A model's weights in files that PyTorch reads and writes: safetensors with the names and shapes
// of the published models ("layer1.0.conv1.weight" [64, 64, 3, 3]). docs/weights.md is their page.

/// Values of a parameter as a tensor of a file, whose name may begin with more.
TensorView view_of(const kernels::ParameterInfo& info, std::span<const std::byte> values,
                   std::string_view prefix = "");

struct LoadOptions {
  std::optional<WeightsLayout> layout = {};  ///< not set: as find_layout finds it
  /// Full names of parameters that keep their values and need not be in the file, say those of a
  /// head for other classes.
  std::vector<std::string> fresh = {};
};

/// What there is to know of a file that was loaded.
struct LoadedWeights {
  WeightsLayout layout = WeightsLayout::linear;
  std::string content_hash;  ///< 32 hex digits, XXH3 over the whole file
};

/// Takes the weights of `file` for `parameters`: each by its name, in F32, F16 or BF16, and for a
/// decoder in either layout, with or without "transformer." before all names. Of positions
/// ("wpe.weight") for a longer context than the model's the first are taken. Other tensors of the
/// file ("optimizer.", "bn1.num_batches_tracked", "h.0.attn.bias") are passed over, but for a
/// "lm_head.weight", which must be the embedding's.
///
/// Errors: those of read_safetensors and find_layout; `invalid_argument` naming file and tensor for
/// the first that is missing, of another shape or type, or has an element that is not finite or a
/// negative variance, for a file of torch.save, and for a name in `fresh` that is none. The
/// parameters are then unchanged.
Result<LoadedWeights> load_weights(FileSystem& files, const std::filesystem::path& file,
                                   kernels::Parameters& parameters,
                                   const LoadOptions& options = {});

/// The tensors and metadata of a file for others.
struct WeightTensors {
  std::vector<TensorView> tensors;  ///< into the weights that were given, and into `storage`
  Metadata metadata;
  std::vector<Buffer> storage;
};

/// The `weights` of a model (view_of, F32) as PyTorch's state_dict has them: for each batch norm
/// also `NAME.num_batches_tracked` (I64), the `steps` that its statistics have seen. In the layout
/// `gpt2` as the state_dict of transformers' GPT2LMHeadModel has them, head included.
/// Errors: `invalid_argument` for `gpt2` if they are of no such decoder; `resource_exhausted`.
Result<WeightTensors> weight_tensors(std::span<const TensorView> weights, std::uint64_t steps,
                                     WeightsLayout layout);

/// Writes the weights as weight_tensors has them, with `metadata` besides. Errors: also those of
/// write_safetensors.
Result<WrittenFile> save_weights(FileSystem& files, const std::filesystem::path& file,
                                 const kernels::Parameters& parameters, std::uint64_t steps,
                                 const Metadata& metadata = {},
                                 WeightsLayout layout = WeightsLayout::linear);

}  // namespace troupe::train
