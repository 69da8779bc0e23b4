#include "actors/train/weights.hpp"

#include <utility>

#include <fmt/format.h>

namespace troupe::train {
namespace {

constexpr std::string_view kRunningMean = ".running_mean";

std::vector<std::uint64_t> shape_of(const kernels::ParameterInfo& info) {
  return {info.shape.dims().begin(), info.shape.dims().end()};
}

TensorView keep(WeightTensors& out, TensorView tensor, Buffer storage) {
  tensor.bytes = std::as_const(storage).bytes();
  out.storage.push_back(std::move(storage));
  return tensor;
}

/// The matrix the other way round.
Result<TensorView> transposed(WeightTensors& out, const TensorView& matrix) {
  TROUPE_ASSIGN(Buffer storage, Buffer::allocate(matrix.bytes.size()));
  const std::span from{reinterpret_cast<const float*>(matrix.bytes.data()),
                       matrix.bytes.size() / sizeof(float)};
  const std::span to{reinterpret_cast<float*>(storage.data()), from.size()};
  transpose(from, matrix.shape[0], matrix.shape[1], to);
  TensorView tensor = matrix;
  tensor.shape = {matrix.shape[1], matrix.shape[0]};
  return keep(out, std::move(tensor), std::move(storage));
}

Status add_linear(WeightTensors& out, std::span<const TensorView> weights, std::uint64_t steps) {
  const auto batches = static_cast<std::int64_t>(steps);
  for (const TensorView& weight : weights) {
    out.tensors.push_back(weight);
    if (!weight.name.ends_with(kRunningMean)) continue;
    const auto layer = weight.name.substr(0, weight.name.size() - kRunningMean.size());
    TROUPE_ASSIGN(Buffer number, Buffer::copy_of(std::as_bytes(std::span(&batches, 1))));
    out.tensors.push_back(keep(
        out, {.name = layer + ".num_batches_tracked", .dtype = "I64", .shape = {}, .bytes = {}},
        std::move(number)));
  }
  return {};
}

Status add_gpt2(WeightTensors& out, std::span<const TensorView> weights) {
  bool decoder = false;
  for (const TensorView& weight : weights) {
    const bool turns = is_transposed_in_gpt2(weight.name) && weight.shape.size() == 2;
    TensorView tensor = weight;
    if (turns) {
      TROUPE_ASSIGN(tensor, transposed(out, weight));
    }
    tensor.name = fmt::format("{}{}", kGpt2Prefix, weight.name);
    out.tensors.push_back(std::move(tensor));
    if (weight.name == kGpt2Embedding) {
      out.tensors.push_back(weight);
      out.tensors.back().name = kGpt2Head;
    }
    decoder = decoder || turns;
  }
  if (decoder) return {};
  return {Code::invalid_argument,
          "the layout gpt2 is for the model gpt, and these weights are of another; write them as "
          "linear"};
}

}  // namespace

TensorView view_of(const kernels::ParameterInfo& info, std::span<const std::byte> values,
                   std::string_view prefix) {
  return {.name = fmt::format("{}{}", prefix, info.name), .shape = shape_of(info), .bytes = values};
}

Result<WeightTensors> weight_tensors(std::span<const TensorView> weights, std::uint64_t steps,
                                     WeightsLayout layout) {
  WeightTensors out;
  // Readers of published files ask whose they are: PyTorch's.
  out.metadata = {{"format", "pt"}, {std::string(kLayoutKey), std::string(to_string(layout))}};
  TROUPE_TRY(layout == WeightsLayout::gpt2 ? add_gpt2(out, weights)
                                           : add_linear(out, weights, steps));
  return out;
}

Result<WrittenFile> save_weights(FileSystem& files, const std::filesystem::path& file,
                                 const kernels::Parameters& parameters, std::uint64_t steps,
                                 const Metadata& metadata, WeightsLayout layout) {
  std::vector<TensorView> weights;
  const auto infos = parameters.model().parameters();
  for (std::size_t i = 0; i < infos.size(); ++i)
    weights.push_back(view_of(infos[i], std::as_bytes(parameters.values(i))));
  TROUPE_ASSIGN(WeightTensors out, weight_tensors(weights, steps, layout));
  out.metadata.insert(metadata.begin(), metadata.end());
  return write_safetensors(files, file, std::move(out.tensors), out.metadata);
}

}  // namespace troupe::train
