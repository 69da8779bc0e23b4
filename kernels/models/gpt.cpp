#include <cmath>

#include <fmt/format.h>

#include "kernels/internal/models.hpp"
#include "kernels/model_builder.hpp"

namespace troupe::kernels::models {
namespace {

using Value = ModelBuilder::Value;

class Gpt {
public:
  explicit Gpt(const GptSize& size) : size_(size), model_("gpt", Shape{size.context}, DType::i32) {}

  Result<Model> build() {
    Value x = model_.add(Embedding{"wte", size_.vocabulary, size_.width, kInitial}, model_.input());
    x = model_.add(PositionEmbedding{"wpe", size_.context, kInitial}, x);
    x = dropout(x);
    for (std::int64_t i = 0; i < size_.layers; ++i) x = block(fmt::format("h.{}", i), x);
    x = model_.add(LayerNorm{"ln_f"}, x);
    model_.add(Linear{.name = "lm_head",
                      .out_features = size_.vocabulary,
                      .bias = false,
                      .tied_to = "wte.weight"},
               x);
    return model_.build();
  }

private:
  static constexpr Initial kInitial{Initial::Kind::normal, 0.02f};

  /// On the way back to the residual stream, to which all layers add, weights start smaller.
  Initial residual_initial() const {
    const auto additions = 2.0 * static_cast<double>(size_.layers);
    return Initial::normal(static_cast<float>(0.02 / std::sqrt(additions)));
  }
  Value dropout(Value x) {
    return size_.dropout > 0.0f ? model_.add(Dropout{size_.dropout}, x) : x;
  }
  Value linear(const std::string& name, Value x, std::int64_t out, const Initial& initial) {
    return model_.add(Linear{.name = name,
                             .out_features = out,
                             .initial = initial,
                             .initial_bias = Initial::constant(0.0f)},
                      x);
  }

  Value block(const std::string& name, Value x) {
    const std::int64_t width = size_.width;
    Value y = model_.add(LayerNorm{name + ".ln_1"}, x);
    y = linear(name + ".attn.c_attn", y, 3 * width, kInitial);
    y = model_.add(Attention{.heads = size_.heads}, y);
    y = linear(name + ".attn.c_proj", y, width, residual_initial());
    x = model_.add(Add{}, x, dropout(y));
    y = model_.add(LayerNorm{name + ".ln_2"}, x);
    y = linear(name + ".mlp.c_fc", y, 4 * width, kInitial);
    y = model_.add(Gelu{}, y);
    y = linear(name + ".mlp.c_proj", y, width, residual_initial());
    return model_.add(Add{}, x, dropout(y));
  }

  const GptSize& size_;
  ModelBuilder model_;
};

Status require(const char* field, std::int64_t value) {
  if (value >= 1) return {};
  return {Code::invalid_argument,
          fmt::format("model 'gpt': {} is {}, but must be at least 1", field, value)};
}

}  // namespace

Result<Model> gpt(const ModelConfig& config) {
  const GptSize& size = config.gpt;
  TROUPE_TRY(require("layers", size.layers));
  TROUPE_TRY(require("heads", size.heads));
  TROUPE_TRY(require("width", size.width));
  TROUPE_TRY(require("context", size.context));
  if (size.width % size.heads != 0)
    return Error{Code::invalid_argument,
                 fmt::format("model 'gpt': width is {}, but must be a multiple of its heads, {}",
                             size.width, size.heads)};
  return Gpt(size).build();
}

}  // namespace troupe::kernels::models
