#include "actors/train/model_factory.hpp"

namespace troupe::train {

Result<kernels::Model> make_model(const JobConfig& config, const ImageDataset& data) {
  kernels::ModelConfig model;
  model.input = {1, static_cast<std::int64_t>(data.height()),
                 static_cast<std::int64_t>(data.width())};
  model.classes = config.model.classes;
  model.hidden.assign(config.model.hidden.begin(), config.model.hidden.end());
  model.small_images = config.model.small_images;
  model.width = config.model.width;
  return kernels::make_model(config.model.name, model);
}

kernels::WorkspaceOptions workspace_options(const JobConfig& config) {
  kernels::WorkspaceOptions options;
  options.input_mean = {static_cast<float>(config.data.mean)};
  options.input_deviation = {static_cast<float>(config.data.std)};
  options.threads = static_cast<int>(config.threads_per_rank);
  return options;
}

}  // namespace troupe::train
