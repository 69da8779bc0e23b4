#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

// Its functions here, not from a library.
#define XXH_INLINE_ALL

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "actors/train/weights.hpp"
#include "kernels/non_finite.hpp"
#include "kernels/short_floats.hpp"

namespace troupe::train {
namespace {

using kernels::ParameterInfo;

template <float (*Convert)(std::uint16_t)>
void widen(std::span<const std::byte> from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from.data() + i * sizeof bits, sizeof bits);
    to[i] = Convert(bits);
  }
}

/// False for a type that has no floats. `values` has as many as the tensor.
bool read(const TensorView& tensor, std::span<float> values) {
  if (tensor.dtype == "F32")
    std::memcpy(values.data(), tensor.bytes.data(), values.size_bytes());
  else if (tensor.dtype == "BF16")
    widen<kernels::bf16_value>(tensor.bytes, values);
  else if (tensor.dtype == "F16")
    widen<kernels::f16_value>(tensor.bytes, values);
  else
    return false;
  return true;
}

/// A zip file, or a pickle of the time before.
bool is_torch_save(std::span<const std::byte> bytes) {
  const auto begins = [&](std::string_view with) {
    return bytes.size() > with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
  };
  return begins("PK\x03\x04") || begins("\x80\x02");
}

std::string content_hash(std::span<const std::byte> bytes) {
  const auto digest = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

/// Takes one file's tensors for a model's parameters.
class Loader {
public:
  Loader(const std::filesystem::path& file, const TensorFile& content, const kernels::Model& model,
         const LoadOptions& options)
      : file_(file), content_(content), model_(model), options_(options) {}

  Result<WeightsLayout> load(kernels::Parameters& parameters) {
    TROUPE_TRY(choose_parameters());
    TROUPE_TRY(find_prefix());
    auto layout = find_layout(content_, prefix_, wanted_, options_.layout);
    if (!layout.ok()) return wrong("weights {}: {}", file_.string(), layout.error().message);
    for (const ParameterInfo& info : wanted_)
      TROUPE_TRY(take(info, *layout, parameters.values(*model_.find_parameter(info.name))));
    TROUPE_TRY(check_head());
    return layout;
  }

private:
  template <class... Args>
  static Error wrong(fmt::format_string<Args...> format, Args&&... args) {
    return {Code::invalid_argument, fmt::format(format, std::forward<Args>(args)...)};
  }

  /// All of the model's but those that stay as they are.
  Status choose_parameters() {
    const auto& fresh = options_.fresh;
    for (const std::string& name : fresh)
      if (!model_.find_parameter(name))
        return wrong(
            "model.fresh has '{}', but model '{}' has no parameter of that name; write names as "
            "they are in its files, such as '{}'",
            name, model_.name(), model_.parameters().back().name);
    for (const ParameterInfo& info : model_.parameters())
      if (std::ranges::find(fresh, info.name) == fresh.end()) wanted_.push_back(info);
    return {};
  }

  /// What the file puts before all names, by the first that is wanted.
  Status find_prefix() {
    if (wanted_.empty()) return {};
    const std::string& name = wanted_.front().name;
    const std::string longer = fmt::format("{}{}", kGpt2Prefix, name);
    if (content_.find(longer) == nullptr) return {};
    if (content_.find(name) != nullptr)
      return wrong("weights {}: both '{}' and '{}' are there; leave one of the two models out",
                   file_.string(), name, longer);
    prefix_ = kGpt2Prefix;
    return {};
  }

  Error wrong_tensor(const ParameterInfo& info, bool turned, std::string_view what) const {
    const auto shape = turned ? kernels::Shape{info.shape[1], info.shape[0]} : info.shape;
    return wrong(
        "weights {}: tensor '{}{}' {}; model '{}' needs it as {}. Take weights of the same "
        "model, or put '{}' into model.fresh",
        file_.string(), prefix_, info.name, what, model_.name(), kernels::to_string(shape),
        info.name);
  }

  /// Whether a decoder's positions are there, and more after them: of a longer context. What a
  /// position learned does not depend on later ones, as no earlier token sees them.
  static bool begins_with(const ParameterInfo& info, const TensorView& tensor) {
    return info.name == kGpt2Positions && info.shape.rank() == 2 && tensor.shape.size() == 2 &&
           tensor.shape[0] > static_cast<std::uint64_t>(info.shape[0]) &&
           tensor.shape[1] == static_cast<std::uint64_t>(info.shape[1]);
  }

  Status take(const ParameterInfo& info, WeightsLayout layout, std::span<float> values) const {
    const bool turned =
        layout == WeightsLayout::gpt2 && is_transposed_in_gpt2(info.name) && info.shape.rank() == 2;
    const TensorView* const tensor = content_.find(fmt::format("{}{}", prefix_, info.name));
    if (tensor == nullptr) return wrong_tensor(info, turned, "is not there");
    std::vector<std::uint64_t> shape{info.shape.dims().begin(), info.shape.dims().end()};
    if (turned) std::swap(shape[0], shape[1]);
    if (tensor->shape != shape && !begins_with(info, *tensor))
      return wrong_tensor(info, turned, fmt::format("is [{}]", fmt::join(tensor->shape, ", ")));
    std::vector<float> plain(turned ? values.size() : 0);
    if (!read(*tensor, turned ? std::span<float>(plain) : values))
      return wrong_tensor(
          info, turned, fmt::format("is of type {}, but must be F32, F16 or BF16", tensor->dtype));
    TROUPE_TRY(check_values(info, *tensor, turned ? plain : values));
    if (turned) transpose(plain, shape[0], shape[1], values);
    return {};
  }

  /// `values` are the tensor's, in its order. What is wrong with them would be found in the
  /// gradient of the first step, and blamed on the learning rate.
  Status check_values(const ParameterInfo& info, const TensorView& tensor,
                      std::span<const float> values) const {
    const auto wrong_element = [&](std::size_t at, std::string_view why) {
      return wrong(
          "weights {}: tensor '{}' is {} at element {} of {}, {}; take weights from before "
          "their training diverged",
          file_.string(), tensor.name, values[at], at, values.size(), why);
    };
    if (const auto bad = kernels::find_non_finite(values); bad < values.size())
      return wrong_element(bad, "and what is computed from that is no number");
    if (info.kind != kernels::ParameterKind::statistic || !info.name.ends_with("running_var"))
      return {};
    const auto negative = std::ranges::find_if(values, [](float x) { return x < 0; });
    if (negative != values.end())
      return wrong_element(static_cast<std::size_t>(negative - values.begin()),
                           "but a variance is never negative");
    return {};
  }

  /// A head of its own would be left out without a word: a model that ties it computes otherwise.
  Status check_head() const {
    const TensorView* const head = content_.find(kGpt2Head);
    if (head == nullptr || model_.find_parameter(kGpt2Head)) return {};
    if (std::ranges::none_of(wanted_, [](const auto& x) { return x.name == kGpt2Embedding; }))
      return {};
    const TensorView* const embedding = content_.find(fmt::format("{}{}", prefix_, kGpt2Embedding));
    if (embedding != nullptr && head->dtype == embedding->dtype &&
        std::ranges::equal(head->bytes, embedding->bytes))
      return {};
    return wrong(
        "weights {}: tensor '{}' differs from '{}{}', which model '{}' uses in its place; take "
        "weights whose head is tied to the embedding",
        file_.string(), kGpt2Head, prefix_, kGpt2Embedding, model_.name());
  }

  const std::filesystem::path& file_;
  const TensorFile& content_;
  const kernels::Model& model_;
  const LoadOptions& options_;
  std::vector<ParameterInfo> wanted_;
  std::string prefix_;
};

}  // namespace

Result<LoadedWeights> load_weights(FileSystem& files, const std::filesystem::path& file,
                                   kernels::Parameters& parameters, const LoadOptions& options) {
  const auto bytes = files.read(file);
  const auto read = bytes.ok() ? decode_safetensors(*bytes, file.native(), Checksum::if_present)
                               : Result<TensorFile>(bytes.error());
  if (read.code() == Code::corrupt_data && is_torch_save(bytes->bytes()))
    return Error{Code::invalid_argument,
                 fmt::format("weights {}: this is what torch.save writes; write it again with "
                             "safetensors.torch.save_file(model.state_dict(), ...)",
                             file.string())};
  if (!read.ok())
    return Error{read.code(), fmt::format("weights: {}; {}", read.error().message,
                                          read.code() == Code::corrupt_data
                                              ? "copy it again, from where it is whole"
                                              : "check the file that model.weights names")};
  const TensorFile& content = *read;
  TROUPE_ASSIGN(kernels::Parameters loaded, parameters.clone());
  Loader loader(file, content, parameters.model(), options);
  TROUPE_ASSIGN(const WeightsLayout layout, loader.load(loaded));
  std::ranges::copy(loaded.values(), parameters.values().begin());
  return LoadedWeights{layout, content_hash(content.storage.bytes())};
}

}  // namespace troupe::train
