#include "actors/train/weights_layout.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::train {
namespace {

constexpr std::array<std::string_view, 4> kConv1d = {".attn.c_attn.weight", ".attn.c_proj.weight",
                                                     ".mlp.c_fc.weight", ".mlp.c_proj.weight"};

Error wrong(std::string what) {
  return {Code::invalid_argument, std::move(what)};
}

/// What the file's metadata says, if it says anything.
Result<std::optional<WeightsLayout>> said_layout(const TensorFile& file) {
  const auto said = file.metadata.find(std::string(kLayoutKey));
  if (said == file.metadata.end()) return std::optional<WeightsLayout>();
  const auto layout = weights_layout(said->second);
  if (!layout)
    return wrong(
        fmt::format("its metadata says {} = '{}', but layouts are linear and gpt2; write "
                    "it anew",
                    kLayoutKey, said->second));
  return layout;
}

/// What a matrix that is not square says of its layout; nothing if it is of neither shape.
std::optional<WeightsLayout> shown_layout(const TensorView& tensor, const kernels::Shape& shape) {
  const auto out = static_cast<std::uint64_t>(shape[0]), in = static_cast<std::uint64_t>(shape[1]);
  if (tensor.shape.size() != 2) return std::nullopt;
  if (tensor.shape[0] == out && tensor.shape[1] == in) return WeightsLayout::linear;
  if (tensor.shape[0] == in && tensor.shape[1] == out) return WeightsLayout::gpt2;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(WeightsLayout layout) noexcept {
  return layout == WeightsLayout::gpt2 ? "gpt2" : "linear";
}

std::optional<WeightsLayout> weights_layout(std::string_view name) noexcept {
  for (const auto layout : {WeightsLayout::linear, WeightsLayout::gpt2})
    if (name == to_string(layout)) return layout;
  return std::nullopt;
}

bool is_transposed_in_gpt2(std::string_view name) noexcept {
  return std::ranges::any_of(kConv1d, [&](std::string_view end) { return name.ends_with(end); });
}

void transpose(std::span<const float> from, std::size_t rows, std::size_t columns,
               std::span<float> to) {
  TROUPE_CHECK(from.size() == rows * columns && to.size() == from.size(),
               fmt::format("{} to {} floats of [{}, {}]", from.size(), to.size(), rows, columns));
  // Square tiles: a column's cache lines are used up before they are gone.
  constexpr std::size_t kTile = 32;
  for (std::size_t top = 0; top < rows; top += kTile)
    for (std::size_t left = 0; left < columns; left += kTile)
      for (std::size_t row = top; row < std::min(top + kTile, rows); ++row)
        for (std::size_t column = left; column < std::min(left + kTile, columns); ++column)
          to[column * rows + row] = from[row * columns + column];
}

Result<WeightsLayout> find_layout(const TensorFile& file, std::string_view prefix,
                                  std::span<const kernels::ParameterInfo> parameters,
                                  std::optional<WeightsLayout> told) {
  TROUPE_ASSIGN(const auto said, said_layout(file));
  if (told && said && *told != *said)
    return wrong(fmt::format("it is asked for as {}, but says that it is {}; leave the layout out",
                             to_string(*told), to_string(*said)));
  if (told) return *told;
  if (said) return *said;

  std::string names[2];
  std::string_view square;
  for (const auto& info : parameters) {
    if (!is_transposed_in_gpt2(info.name) || info.shape.rank() != 2) continue;
    const TensorView* const tensor = file.find(fmt::format("{}{}", prefix, info.name));
    if (tensor == nullptr) continue;
    if (info.shape[0] == info.shape[1])
      square = info.name;
    else if (const auto shown = shown_layout(*tensor, info.shape))
      names[static_cast<std::size_t>(*shown)] = tensor->name;
  }
  const auto& [linear, gpt2] = names;
  if (!linear.empty() && !gpt2.empty())
    return wrong(
        fmt::format("tensor '{}' is [out, in] and '{}' [in, out]; write it anew with all "
                    "of them one way round",
                    linear, gpt2));
  if (linear.empty() && gpt2.empty() && !square.empty())
    return wrong(
        fmt::format("nothing says whether '{}' is [out, in] or [in, out]; set the layout, "
                    "or its metadata {} to linear or gpt2",
                    square, kLayoutKey));
  return gpt2.empty() ? WeightsLayout::linear : WeightsLayout::gpt2;
}

}  // namespace troupe::train
