#include <fmt/format.h>

#include "actors/config/internal/key_table.hpp"

namespace troupe::train::internal {
namespace {

/// A key that `model` does not have, though it is set.
std::optional<Problem> unused(std::string_view key, bool set, const ModelConfig& model,
                              std::string_view taker) {
  if (!set) return std::nullopt;
  return Problem{key, fmt::format("but a {} has no use for it; remove the key or take the model {}",
                                  model.name, taker)};
}

std::optional<Problem> check_gpt(const ModelConfig& model) {
  for (const auto& [key, value] :
       {std::pair{"model.layers", model.layers}, std::pair{"model.heads", model.heads},
        std::pair{"model.width", model.width}})
    if (value == 0) return Problem{key, "but a gpt needs it; set it to 1 or more"};
  if (model.width % model.heads != 0)
    return Problem{"model.heads", fmt::format("but must divide model.width, which is {}; take "
                                              "another number of heads, or another width",
                                              model.width)};
  return std::nullopt;
}

}  // namespace

std::optional<Problem> check_model(const ModelConfig& model) {
  const bool gpt = model.name == "gpt";
  const bool resnet = model.name.starts_with("resnet");
  if (!model.fresh.empty() && model.weights.empty())
    return Problem{"model.fresh",
                   "but without model.weights all parameters start by the seed; remove the key or "
                   "name a file"};
  const bool vgg = model.name.starts_with("vgg");
  const bool lstm = model.name.starts_with("lstm");
  if (model.name != "mlp" && !model.hidden.empty())
    return Problem{"model.hidden",
                   fmt::format("but a {} has its own layers; remove the key or take the model mlp",
                               model.name)};
  if (!resnet)
    if (auto found = unused("model.small_images", model.small_images, model, "resnet18"))
      return found;
  if (!resnet && model.name != "vgg16_bn")
    if (auto found = unused("model.synchronized_batch_norm", model.synchronized_batch_norm, model,
                            "resnet18 or vgg16_bn"))
      return found;
  if (!gpt && !lstm) {
    if (auto found = unused("model.layers", model.layers != 0, model, "gpt or lstm")) return found;
    if (auto found = unused("model.dropout", model.dropout != 0, model, "gpt or lstm"))
      return found;
  }
  if (!gpt)
    if (auto found = unused("model.heads", model.heads != 0, model, "gpt")) return found;
  if (!resnet && !vgg && !gpt && !lstm)
    return unused("model.width", model.width != 0, model, "resnet18, vgg16, gpt or lstm");
  return gpt ? check_gpt(model) : std::nullopt;
}

}  // namespace troupe::train::internal
