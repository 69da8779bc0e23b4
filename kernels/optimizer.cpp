#include "kernels/optimizer.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/internal/optimizers.hpp"
#include "runtime/base/check.hpp"

namespace troupe::kernels {

namespace {

using Make = std::unique_ptr<Optimizer> (*)(const OptimizerOptions& options, const Model& model);

constexpr std::array<std::string_view, 5> kNames = {"sgd", "adam", "adamw", "lamb", "lars"};
constexpr std::array<Make, 5> kMakers = {optimizers::sgd, optimizers::adam, optimizers::adamw,
                                         optimizers::lamb, optimizers::lars};

/// Null if there is none.
Make find(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? nullptr
                               : kMakers[static_cast<std::size_t>(found - kNames.begin())];
}

Status out_of_range(std::string_view field, double value, std::string_view range) {
  return {Code::invalid_argument, fmt::format("{} is {}, but must be {}", field, value, range)};
}

}  // namespace

std::span<const std::string_view> optimizer_names() noexcept {
  return kNames;
}

Status OptimizerOptions::validate() const {
  if (find(name) == nullptr)
    return {Code::not_found, fmt::format("there is no optimizer '{}'; use one of: {}", name,
                                         fmt::join(kNames, ", "))};
  for (const auto& [field, value] :
       {std::pair{"momentum", momentum}, {"beta1", beta1}, {"beta2", beta2}})
    if (!(value >= 0 && value < 1)) return out_of_range(field, value, "at least 0 and below 1");
  if (!(weight_decay >= 0 && weight_decay < 1e9))
    return out_of_range("weight_decay", weight_decay, "0 or more");
  // Where an element's gradient has always been zero, this alone keeps 0 / 0 away.
  if (!(epsilon >= 1e-30 && epsilon < 1e9))
    return out_of_range("epsilon", epsilon, "at least 1e-30");
  if (!(trust_coefficient > 0 && trust_coefficient < 1e9))
    return out_of_range("trust_coefficient", trust_coefficient, "above 0");
  if (nesterov && momentum == 0)
    return {Code::invalid_argument, "nesterov is on, but momentum is 0; set a momentum"};
  return {};
}

Result<std::vector<Parameters>> Optimizer::initial_state() const {
  std::vector<Parameters> state;
  for (std::size_t i = 0; i < state_names().size(); ++i) {
    TROUPE_ASSIGN(auto zeros, Parameters::zeros(model_));
    state.push_back(std::move(zeros));
  }
  return state;
}

void Optimizer::update(const UpdateFactors& factors, std::span<const GradientRun> gradient,
                       Parameters& parameters, std::span<Parameters> state) const {
  std::vector<float*> buffers;
  for (Parameters& buffer : state) {
    TROUPE_CHECK(buffer.values().size() == model_.flat_size(), "state of another model");
    buffers.push_back(buffer.values().data());
  }
  TROUPE_CHECK(parameters.values().size() == model_.flat_size(), "parameters of another model");
  update(factors, gradient, parameters.values().data(), buffers);
}

void Optimizer::update(const UpdateFactors& factors, std::span<const GradientRun> gradient,
                       float* parameters, std::span<float* const> state) const {
  TROUPE_CHECK(is_whole_gradient(model_, gradient), "an update by a part of a gradient");
  TROUPE_CHECK(state.size() == state_names().size(),
               fmt::format("an update with {} buffers of state, not {}", state.size(),
                           state_names().size()));
  apply(factors, gradient, parameters, state);
}

Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerOptions& options,
                                                  const Model& model) {
  TROUPE_TRY(options.validate());
  return find(options.name)(options, model);
}

}  // namespace troupe::kernels
