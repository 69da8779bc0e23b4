#include "kernels/models.hpp"

#include <string>

#include <fmt/format.h>

#include "kernels/internal/models.hpp"
#include "kernels/rank_sums.hpp"

namespace troupe::kernels {

namespace {

struct Entry {
  std::string_view name;
  Result<Model> (*make)(const ModelConfig& config);
};

constexpr Entry kModels[] = {
    {"lenet5", models::lenet5},
    {"mlp", models::mlp},
    {"resnet18",
     [](const ModelConfig& c) {
       return models::resnet({"resnet18", {2, 2, 2, 2}, false}, c);
     }},
    {"resnet34",
     [](const ModelConfig& c) {
       return models::resnet({"resnet34", {3, 4, 6, 3}, false}, c);
     }},
    {"resnet50",
     [](const ModelConfig& c) {
       return models::resnet({"resnet50", {3, 4, 6, 3}, true}, c);
     }},
    {"resnet101",
     [](const ModelConfig& c) {
       return models::resnet({"resnet101", {3, 4, 23, 3}, true}, c);
     }},
    {"vgg16", [](const ModelConfig& c) { return models::vgg16(false, c); }},
    {"vgg16_bn", [](const ModelConfig& c) { return models::vgg16(true, c); }},
    {"gpt", models::gpt},
    {"lstm", models::lstm},
    {"lstm_lm", models::lstm_lm},
};

}  // namespace

Result<Model> make_model(std::string_view name, const ModelConfig& config) {
  std::string names;
  for (const Entry& entry : kModels) {
    if (entry.name == name) {
      TROUPE_ASSIGN(Model model, entry.make(config));
      if (config.synchronized_batch_norm && rank_sums(model).calls == 0)
        return Error{Code::invalid_argument,
                     fmt::format("model '{}' has no batch norms that could be synchronized", name)};
      return model;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  return Error{Code::not_found, fmt::format("there is no model '{}'; use one of: {}", name, names)};
}

}  // namespace troupe::kernels
