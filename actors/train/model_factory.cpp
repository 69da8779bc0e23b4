#include "actors/train/model_factory.hpp"

#include <utility>

#include <fmt/format.h>

namespace troupe::train {

Result<kernels::Model> make_model(const JobConfig& config, const SampleLayout& layout) {
  const bool of_tokens = layout.labels.rank() != 0;
  const bool takes_tokens = config.model.name == "gpt" || config.model.name == "lstm_lm";
  if (of_tokens != takes_tokens)
    return Error{Code::invalid_argument,
                 fmt::format("model.name is \"{}\" and data.format \"{}\": gpt and lstm_lm are for "
                             "tokens and text, the others are for images",
                             config.model.name, config.data.format)};
  kernels::ModelConfig model;
  model.input = layout.input;
  model.classes = config.model.classes;
  model.hidden.assign(config.model.hidden.begin(), config.model.hidden.end());
  model.small_images = config.model.small_images;
  model.synchronized_batch_norm = config.model.synchronized_batch_norm;
  if (config.model.width > 0) model.width = config.model.width;
  model.gpt = {.layers = config.model.layers,
               .heads = config.model.heads,
               .width = config.model.width,
               .context = layout.input[0],
               .vocabulary = config.model.classes,
               .dropout = static_cast<float>(config.model.dropout)};
  model.lstm.dropout = static_cast<float>(config.model.dropout);
  if (config.model.width > 0) model.lstm.width = config.model.width;
  if (config.model.layers > 0) model.lstm.layers = config.model.layers;
  return kernels::make_model(config.model.name, model);
}

Result<kernels::ComputeDevice> open_device(const JobConfig& config) {
  TROUPE_ASSIGN(auto name, kernels::DeviceName::parse(config.device));
  // Each seed has work done in another order, and with the same results.
  if (name.kind == kernels::Device::simulated)
    name.number = static_cast<std::uint32_t>(config.seed);
  auto device = kernels::ComputeDevice::open(name);
  if (!device.ok())
    return Error{device.code(), fmt::format("job.device is \"{}\", but {}", config.device,
                                            device.error().message)};
  return device;
}

kernels::WorkspaceOptions workspace_options(const JobConfig& config,
                                            kernels::ComputeDevice device) {
  kernels::WorkspaceOptions options;
  options.input_mean.assign(config.data.mean.begin(), config.data.mean.end());
  options.input_deviation.assign(config.data.std.begin(), config.data.std.end());
  options.label_smoothing = static_cast<float>(config.model.label_smoothing);
  options.threads = static_cast<int>(config.threads_per_rank);
  options.device = std::move(device);
  for (const auto type : {kernels::DType::f32, kernels::DType::bf16, kernels::DType::f16})
    if (config.precision == kernels::to_string(type)) options.precision = type;
  return options;
}

}  // namespace troupe::train
