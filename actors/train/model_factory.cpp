#include "actors/train/model_factory.hpp"

#include <fmt/format.h>

namespace troupe::train {

Result<kernels::Model> make_model(const JobConfig& config, const SampleLayout& layout) {
  // No model has an output for each token yet.
  if (layout.labels.rank() != 0)
    return Error{
        Code::not_supported,
        fmt::format("model.name is \"{}\", which gives one label for a sample, but samples "
                    "of data.format \"{}\" have {}; take a format with one",
                    config.model.name, config.data.format, layout.labels.elements())};
  kernels::ModelConfig model;
  model.input = layout.input;
  model.classes = config.model.classes;
  model.hidden.assign(config.model.hidden.begin(), config.model.hidden.end());
  model.small_images = config.model.small_images;
  model.width = config.model.width;
  return kernels::make_model(config.model.name, model);
}

kernels::WorkspaceOptions workspace_options(const JobConfig& config) {
  kernels::WorkspaceOptions options;
  options.input_mean.assign(config.data.mean.begin(), config.data.mean.end());
  options.input_deviation.assign(config.data.std.begin(), config.data.std.end());
  options.threads = static_cast<int>(config.threads_per_rank);
  return options;
}

}  // namespace troupe::train
