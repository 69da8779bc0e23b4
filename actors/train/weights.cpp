#include "actors/train/weights.hpp"

#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::train {
namespace {

constexpr std::string_view kRunningMean = ".running_mean";

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    // Zero or below the least normal number: mantissa * 2^-24.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

template <float (*Convert)(std::uint16_t)>
void widen(std::span<const std::byte> from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from.data() + i * sizeof bits, sizeof bits);
    to[i] = Convert(bits);
  }
}

Status read(const TensorView& tensor, std::span<float> values) {
  if (tensor.dtype == "F32") {
    std::memcpy(values.data(), tensor.bytes.data(), values.size_bytes());
    return {};
  }
  if (tensor.dtype == "BF16")
    widen<from_bf16>(tensor.bytes, values);
  else if (tensor.dtype == "F16")
    widen<from_f16>(tensor.bytes, values);
  else
    return {Code::invalid_argument,
            fmt::format("is of type {}, but must be F32, F16 or BF16", tensor.dtype)};
  return {};
}

std::vector<std::uint64_t> shape_of(const kernels::ParameterInfo& info) {
  return {info.shape.dims().begin(), info.shape.dims().end()};
}

}  // namespace

TensorView view_of(const kernels::ParameterInfo& info, std::span<const std::byte> values,
                   std::string_view prefix) {
  return {.name = fmt::format("{}{}", prefix, info.name), .shape = shape_of(info), .bytes = values};
}

Status load_weights(FileSystem& files, const std::filesystem::path& file,
                    kernels::Parameters& parameters) {
  TROUPE_ASSIGN(const TensorFile content, read_safetensors(files, file, Checksum::if_present));
  TROUPE_ASSIGN(kernels::Parameters loaded, kernels::Parameters::zeros(parameters.model()));
  const auto infos = parameters.model().parameters();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const auto wrong = [&](std::string_view what) {
      return Error{Code::invalid_argument,
                   fmt::format("weights {}: tensor '{}' {}; model '{}' needs it as {}",
                               file.string(), infos[i].name, what, parameters.model().name(),
                               kernels::to_string(infos[i].shape))};
    };
    const TensorView* const tensor = content.find(infos[i].name);
    if (tensor == nullptr) return wrong("is not there");
    if (tensor->shape != shape_of(infos[i]))
      return wrong(fmt::format("is [{}]", fmt::join(tensor->shape, ", ")));
    if (const Status status = read(*tensor, loaded.values(i)); !status.ok())
      return wrong(status.error().message);
  }
  std::ranges::copy(loaded.values(), parameters.values().begin());
  return {};
}

Result<WrittenFile> save_weights(FileSystem& files, const std::filesystem::path& file,
                                 const kernels::Parameters& parameters, std::uint64_t steps,
                                 const Metadata& metadata) {
  const auto batches = static_cast<std::int64_t>(steps);
  std::vector<TensorView> tensors;
  const auto infos = parameters.model().parameters();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const std::string& name = infos[i].name;
    tensors.push_back(view_of(infos[i], std::as_bytes(parameters.values(i))));
    if (!name.ends_with(kRunningMean)) continue;
    const std::string layer = name.substr(0, name.size() - kRunningMean.size());
    tensors.push_back({.name = layer + ".num_batches_tracked",
                       .dtype = "I64",
                       .shape = {},
                       .bytes = std::as_bytes(std::span(&batches, 1))});
  }
  return write_safetensors(files, file, std::move(tensors), metadata);
}

}  // namespace troupe::train
