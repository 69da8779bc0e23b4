#include "kernels/internal/custom_pass.hpp"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

namespace troupe::kernels {
namespace {

template <class Call>
Status guarded(const Custom& custom, const char* what, const Call& call) {
  try {
    const Status status = call();
    if (status.ok()) return {};
    return {status.code(),
            fmt::format("{}: {}: {}", custom.describe(), what, status.error().message)};
  } catch (const std::exception& thrown) {
    return {Code::internal, fmt::format("{}: {} threw an exception, but must return an error: {}",
                                        custom.describe(), what, thrown.what())};
  } catch (...) {
    return {Code::internal, fmt::format("{}: {} threw an exception, but must return an error",
                                        custom.describe(), what)};
  }
}

}  // namespace

std::vector<CustomParameter> custom_parameters(const KernelRequest& request) {
  std::vector<CustomParameter> parameters;
  for (const std::size_t index : request.layers[0].parameters) {
    const ParameterInfo& info = request.model.parameters()[index];
    parameters.push_back({info.offset, info.elements});
  }
  return parameters;
}

Status run_forward(const Custom& custom, const CustomForward& pass) {
  std::ranges::fill(pass.output, 0.0f);
  return guarded(custom, "forward", [&] { return custom.layer->forward(pass); });
}

Status run_backward(const Custom& custom, const CustomBackward& pass) {
  for (const auto& gradient : pass.parameter_gradients) std::ranges::fill(gradient, 0.0f);
  for (const auto& gradient : pass.input_gradients) std::ranges::fill(gradient, 0.0f);
  return guarded(custom, "backward", [&] { return custom.layer->backward(pass); });
}

}  // namespace troupe::kernels
