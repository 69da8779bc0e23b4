#include "actors/train/model_factory.hpp"

namespace troupe::train {

Result<kernels::Model> make_model(const JobConfig& config, const ImageDataset& data) {
  kernels::ModelConfig model;
  model.input = {1, static_cast<std::int64_t>(data.height()),
                 static_cast<std::int64_t>(data.width())};
  model.classes = config.model.classes;
  model.hidden.assign(config.model.hidden.begin(), config.model.hidden.end());
  return kernels::make_model(config.model.name, model);
}

}  // namespace troupe::train
