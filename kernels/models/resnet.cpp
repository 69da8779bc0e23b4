#include <fmt/format.h>

#include "kernels/internal/models.hpp"
#include "kernels/model_builder.hpp"

namespace troupe::kernels::models {
namespace {

using Value = ModelBuilder::Value;

class ResNet {
public:
  ResNet(const ResNetSize& size, const ModelConfig& config)
      : size_(size), config_(config), model_(size.name, config.input) {}

  Result<Model> build() {
    Value x = config_.small_images ? convolution("conv1", model_.input(), config_.width, 3, 1)
                                   : convolution("conv1", model_.input(), config_.width, 7, 2);
    x = model_.add(Relu{}, model_.add(norm("bn1"), x));
    if (!config_.small_images)
      x = model_.add(Pooling{.kind = Pooling::Kind::max, .kernel = 3, .stride = 2, .padding = 1},
                     x);
    std::int64_t width = config_.width;
    for (std::size_t stage = 0; stage < size_.blocks.size(); ++stage, width *= 2)
      for (std::int64_t i = 0; i < size_.blocks[stage]; ++i)
        x = block(fmt::format("layer{}.{}", stage + 1, i), x, width, stage > 0 && i == 0 ? 2 : 1);
    x = model_.add(Flatten{}, model_.add(GlobalAveragePooling{}, x));
    model_.add(Linear{"fc", config_.classes}, x);
    return model_.build();
  }

private:
  Value convolution(const std::string& name, Value x, std::int64_t channels, std::int64_t kernel,
                    std::int64_t stride) {
    return model_.add(Convolution{.name = name,
                                  .out_channels = channels,
                                  .kernel = kernel,
                                  .stride = stride,
                                  .padding = kernel / 2,
                                  .bias = false,
                                  .initial = Initial::by_fan_out(channels * kernel * kernel)},
                      x);
  }
  BatchNorm norm(const std::string& name) const {
    return {.name = name, .synchronized = config_.synchronized_batch_norm};
  }
  Value normalized(const std::string& name, const std::string& norm_name, Value x,
                   std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    return model_.add(norm(norm_name), convolution(name, x, channels, kernel, stride));
  }

  Value block(const std::string& name, Value x, std::int64_t width, std::int64_t stride) {
    const std::int64_t out = size_.bottleneck ? 4 * width : width;
    const auto part = [&](int i, Value from, std::int64_t channels, std::int64_t kernel,
                          std::int64_t step) {
      return normalized(fmt::format("{}.conv{}", name, i), fmt::format("{}.bn{}", name, i), from,
                        channels, kernel, step);
    };
    const auto relu = [&](Value from) { return model_.add(Relu{}, from); };
    Value y = x;
    if (size_.bottleneck) {
      y = relu(part(1, y, width, 1, 1));
      y = relu(part(2, y, width, 3, stride));
      y = part(3, y, out, 1, 1);
    } else {
      y = relu(part(1, y, width, 3, stride));
      y = part(2, y, out, 3, 1);
    }
    if (stride != 1 || model_.shape(x)[0] != out)
      x = normalized(name + ".downsample.0", name + ".downsample.1", x, out, 1, stride);
    return relu(model_.add(Add{}, y, x));
  }

  const ResNetSize& size_;
  const ModelConfig& config_;
  ModelBuilder model_;
};

}  // namespace

Result<Model> resnet(const ResNetSize& size, const ModelConfig& config) {
  if (config.input.rank() != 3)
    return Error{Code::shape_mismatch,
                 fmt::format("model '{}' needs input [channels, height, width], not {}", size.name,
                             to_string(config.input))};
  return ResNet(size, config).build();
}

}  // namespace troupe::kernels::models
