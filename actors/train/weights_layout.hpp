#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/checkpoint/safetensors.hpp"
#include "kernels/model.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// What a file calls a model's weights, and which way round it has those of a decoder's linear
/// layers. For all other models there is only `linear`.
enum class WeightsLayout : std::uint8_t {
  linear,  ///< as torch.nn.Linear and our models have them: [out, in], and our names
  gpt2,    ///< as GPT-2 was published: [in, out] (its Conv1D), and "transformer." before the names
};

/// "linear", "gpt2": what a job file and a file's metadata call it.
std::string_view to_string(WeightsLayout layout) noexcept;
std::optional<WeightsLayout> weights_layout(std::string_view name) noexcept;

/// Metadata key under which a file says its layout.
inline constexpr std::string_view kLayoutKey = "troupe.layout";
/// What names in the layout `gpt2` begin with.
inline constexpr std::string_view kGpt2Prefix = "transformer.";
/// The head's weight, which is the embedding's, in files that have it twice.
inline constexpr std::string_view kGpt2Head = "lm_head.weight";
inline constexpr std::string_view kGpt2Embedding = "wte.weight";
inline constexpr std::string_view kGpt2Positions = "wpe.weight";

/// Whether the layout `gpt2` has the transpose of the parameter `name`.
bool is_transposed_in_gpt2(std::string_view name) noexcept;

/// `from` [rows, columns] to `to` [columns, rows].
void transpose(std::span<const float> from, std::size_t rows, std::size_t columns,
               std::span<float> to);

/// The layout of `file`'s tensors, which are called `prefix` and the parameter's name: `told`, or
/// else what the file says of itself, or else what the shapes of its matrices say. A square one
/// says nothing; it is as the others are, of which GPT-2 has three in each layer.
///
/// Errors: `invalid_argument` if `told` and the file differ, the file has a layout that is not
/// known, its matrices are of both, or only square ones of `parameters` are there.
Result<WeightsLayout> find_layout(const TensorFile& file, std::string_view prefix,
                                  std::span<const kernels::ParameterInfo> parameters,
                                  std::optional<WeightsLayout> told);

}  // namespace troupe::train
