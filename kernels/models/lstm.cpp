#include <fmt/format.h>

#include "kernels/internal/models.hpp"
#include "kernels/model_builder.hpp"

namespace troupe::kernels::models {
namespace {

Status require(std::string_view model, const char* field, std::int64_t value) {
  if (value >= 1) return {};
  return {Code::invalid_argument,
          fmt::format("model '{}': {} is {}, but must be at least 1", model, field, value)};
}

}  // namespace

Result<Model> lstm(const ModelConfig& config) {
  const LstmSize& size = config.lstm;
  TROUPE_TRY(require("lstm", "width", size.width));
  TROUPE_TRY(require("lstm", "layers", size.layers));
  const Shape& input = config.input;
  const bool image = input.rank() == 3 && input[0] == 1;
  if (!image && input.rank() != 2)
    return Error{Code::shape_mismatch,
                 fmt::format("model 'lstm' needs input [time, features], or images [1, height, "
                             "width] whose rows are the steps, not {}",
                             to_string(input))};
  ModelBuilder model("lstm", input);
  auto x = model.input();
  if (image) x = model.add(Reshape{input.without_first()}, x);
  x = model.add(
      Lstm{.name = "lstm", .hidden = size.width, .layers = size.layers, .sequence = false}, x);
  if (size.dropout > 0.0f) x = model.add(Dropout{size.dropout}, x);
  model.add(Linear{"fc", config.classes}, x);
  return model.build();
}

Result<Model> lstm_lm(const ModelConfig& config) {
  const LstmSize& size = config.lstm;
  TROUPE_TRY(require("lstm_lm", "width", size.width));
  TROUPE_TRY(require("lstm_lm", "layers", size.layers));
  if (config.input.rank() != 1)
    return Error{Code::shape_mismatch, fmt::format("model 'lstm_lm' needs input [tokens], not {}",
                                                   to_string(config.input))};
  ModelBuilder model("lstm_lm", config.input, DType::i32);
  const auto dropout = [&](ModelBuilder::Value x) {
    return size.dropout > 0.0f ? model.add(Dropout{size.dropout}, x) : x;
  };
  auto x = model.add(Embedding{"encoder", config.classes, size.width}, model.input());
  x = model.add(Lstm{.name = "rnn", .hidden = size.width, .layers = size.layers}, dropout(x));
  model.add(Linear{"decoder", config.classes}, dropout(x));
  return model.build();
}

}  // namespace troupe::kernels::models
