#include "actors/train/weights_layout.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/train/weights.hpp"
#include "kernels/models.hpp"
#include "tests/actors/checkpoint/fake_file_system.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A decoder's weights in files of both layouts.
class Gpt2Layout : public testing::Test {
protected:
  using Change = std::function<void(TensorView&)>;

  /// The file as save_weights makes it, without what it says of itself, and with every tensor
  /// changed; one that has lost its name is left out.
  void write(WeightsLayout layout, const Change& change, const Metadata& metadata = {}) {
    ASSERT_TRUE(save_weights(files_, file_, parameters_, 3, {}, layout).ok());
    const auto content = read_safetensors(files_, file_).value();
    std::vector<TensorView> tensors;
    for (TensorView tensor : content.tensors) {
      change(tensor);
      if (!tensor.name.empty()) tensors.push_back(std::move(tensor));
    }
    ASSERT_TRUE(write_safetensors(files_, file_, std::move(tensors), metadata).ok());
  }
  static void nothing(TensorView&) {}

  void expect_loads_as(WeightsLayout layout) {
    auto loaded = kernels::Parameters::initialized(model_, 2).value();
    const auto result = load_weights(files_, file_, loaded, options_);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->layout, layout);
    EXPECT_TRUE(std::ranges::equal(loaded.values(), parameters_.values()));
  }
  std::string error_of_load() {
    auto loaded = kernels::Parameters::initialized(model_, 2).value();
    const auto result = load_weights(files_, file_, loaded, options_);
    return result.ok() ? "none" : to_string(result.error());
  }

  FakeFileSystem files_;
  const std::filesystem::path file_ = "/gpt.safetensors";
  LoadOptions options_;
  const kernels::Model model_ =
      kernels::make_model(
          "gpt", {.gpt = {.layers = 2, .heads = 2, .width = 8, .context = 5, .vocabulary = 11}})
          .value();
  kernels::Parameters parameters_ = kernels::Parameters::initialized(model_, 1).value();
};

TEST_F(Gpt2Layout, is_that_of_the_published_files) {
  ASSERT_TRUE(save_weights(files_, file_, parameters_, 3, {}, WeightsLayout::gpt2).ok());
  const auto content = read_safetensors(files_, file_).value();
  EXPECT_EQ(content.metadata.at("format"), "pt");
  EXPECT_EQ(content.tensors.size(), model_.parameters().size() + 1);
  const auto shape = [&](const std::string& name) {
    const auto* const tensor = content.find(name);
    return tensor == nullptr ? std::vector<std::uint64_t>{} : tensor->shape;
  };
  using Shape = std::vector<std::uint64_t>;
  EXPECT_EQ(shape("transformer.wte.weight"), (Shape{11, 8}));
  EXPECT_EQ(shape("transformer.wpe.weight"), (Shape{5, 8}));
  EXPECT_EQ(shape("transformer.h.1.attn.c_attn.weight"), (Shape{8, 24}));
  EXPECT_EQ(shape("transformer.h.1.mlp.c_fc.weight"), (Shape{8, 32}));
  EXPECT_EQ(shape("transformer.h.1.mlp.c_proj.weight"), (Shape{32, 8}));
  EXPECT_EQ(shape("lm_head.weight"), (Shape{11, 8}));

  const auto first = [](std::span<const std::byte> bytes, std::size_t at) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at * sizeof value, sizeof value);
    return value;
  };
  const auto ours = parameters_.values(*model_.find_parameter("h.0.attn.c_proj.weight"));
  const auto* const theirs = content.find("transformer.h.0.attn.c_proj.weight");
  EXPECT_EQ(first(theirs->bytes, 1), ours[8]) << "also where the shape is the same";
}

TEST_F(Gpt2Layout, is_read_as_it_was_written_and_so_is_the_linear_one) {
  for (const auto layout : {WeightsLayout::gpt2, WeightsLayout::linear}) {
    ASSERT_TRUE(save_weights(files_, file_, parameters_, 3, {}, layout).ok());
    expect_loads_as(layout);
    options_.layout = layout;
    expect_loads_as(layout);
    options_.layout.reset();
  }
}

TEST_F(Gpt2Layout, is_told_by_its_matrices_where_the_file_says_nothing) {
  for (const auto layout : {WeightsLayout::gpt2, WeightsLayout::linear}) {
    write(layout, nothing);
    expect_loads_as(layout);
  }
  // As the files that people have: without the prefix, the head and with the mask's buffers.
  write(WeightsLayout::gpt2, [](TensorView& tensor) {
    if (tensor.name == "lm_head.weight")
      tensor.name = "h.0.attn.bias";
    else
      tensor.name.erase(0, kGpt2Prefix.size());
  });
  expect_loads_as(WeightsLayout::gpt2);
}

TEST_F(Gpt2Layout, is_not_guessed) {
  // All that is left beside the square matrices are vectors and embeddings.
  const auto only_square = [this](TensorView& tensor) {
    for (const char* name : {"c_attn.weight", "mlp.c_fc.weight", "mlp.c_proj.weight"})
      if (tensor.name.ends_with(name)) {
        options_.fresh.push_back(tensor.name);
        tensor.name.clear();
        return;
      }
  };
  write(WeightsLayout::linear, only_square);
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("nothing says"), HasSubstr("attn.c_proj.weight"),
                                     HasSubstr("troupe.layout")));
  options_.layout = WeightsLayout::linear;
  EXPECT_EQ(error_of_load(), "none");

  options_ = {};
  write(WeightsLayout::linear, [](TensorView& tensor) {
    if (tensor.name == "h.1.mlp.c_fc.weight") std::swap(tensor.shape[0], tensor.shape[1]);
  });
  EXPECT_THAT(error_of_load(),
              AllOf(HasSubstr("'h.1.mlp.c_fc.weight' [in, out]"), HasSubstr("[out, in]")));
}

TEST_F(Gpt2Layout, that_is_said_is_held_to) {
  const std::string key(kLayoutKey);
  write(WeightsLayout::gpt2, nothing, {{key, "linear"}});
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("c_attn.weight' is [8, 24]"), HasSubstr("[24, 8]")));
  write(WeightsLayout::gpt2, nothing, {{key, "other"}});
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("'other'"), HasSubstr("linear and gpt2")));
  write(WeightsLayout::gpt2, nothing, {{key, "gpt2"}});
  options_.layout = WeightsLayout::linear;
  EXPECT_THAT(error_of_load(), HasSubstr("says that it is gpt2"));
}

TEST_F(Gpt2Layout, of_a_longer_context_gives_its_first_positions) {
  kernels::GptSize longer{.layers = 2, .heads = 2, .width = 8, .context = 9, .vocabulary = 11};
  const auto published = kernels::make_model("gpt", {.gpt = longer}).value();
  const auto theirs = kernels::Parameters::initialized(published, 7).value();
  for (const auto layout : {WeightsLayout::gpt2, WeightsLayout::linear}) {
    ASSERT_TRUE(save_weights(files_, file_, theirs, 3, {}, layout).ok());
    ASSERT_EQ(error_of_load(), "none");
    auto loaded = kernels::Parameters::zeros(model_).value();
    ASSERT_TRUE(load_weights(files_, file_, loaded).ok());
    for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
      const std::span<const float> ours = loaded.values(i), all = theirs.values(i);
      ASSERT_EQ(ours.size() == all.size(), model_.parameters()[i].name != "wpe.weight");
      EXPECT_TRUE(std::ranges::equal(ours, all.first(ours.size()))) << model_.parameters()[i].name;
    }
  }
}

TEST_F(Gpt2Layout, of_a_shorter_context_or_another_width_is_refused) {
  const auto positions = [&](kernels::Shape shape) {
    write(WeightsLayout::gpt2, [&](TensorView& tensor) {
      if (tensor.name != "transformer.wpe.weight") return;
      tensor.shape = {shape.dims().begin(), shape.dims().end()};
      tensor.bytes = tensor.bytes.first(static_cast<std::size_t>(shape.elements()) * sizeof(float));
    });
    return error_of_load();
  };
  EXPECT_THAT(positions({4, 8}), AllOf(HasSubstr("tensor 'transformer.wpe.weight' is [4, 8]"),
                                       HasSubstr("needs it as [5, 8]"), HasSubstr("model.fresh")));
  EXPECT_THAT(positions({10, 4}), HasSubstr("is [10, 4]"));
  EXPECT_THAT(positions({40}), HasSubstr("is [40]"));
}

TEST_F(Gpt2Layout, with_a_head_of_its_own_is_refused) {
  const std::vector<float> other(11 * 8, 0.5f);
  const auto change = [&](TensorView& tensor) {
    if (tensor.name == kGpt2Head) tensor.bytes = std::as_bytes(std::span(other));
  };
  write(WeightsLayout::gpt2, change);
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("'lm_head.weight'"), HasSubstr("wte.weight")));
}

TEST_F(Gpt2Layout, of_two_models_in_one_file_is_refused) {
  write(WeightsLayout::gpt2, [](TensorView& tensor) {
    if (tensor.name == kGpt2Head) tensor.name = kGpt2Embedding;
  });
  EXPECT_THAT(error_of_load(),
              AllOf(HasSubstr("both 'wte.weight'"), HasSubstr("'transformer.wte")));
}

TEST_F(Gpt2Layout, is_for_decoders_only) {
  const auto model = kernels::make_model("lenet5").value();
  const auto parameters = kernels::Parameters::initialized(model, 1).value();
  const auto saved = save_weights(files_, file_, parameters, 1, {}, WeightsLayout::gpt2);
  ASSERT_EQ(saved.code(), Code::invalid_argument);
  EXPECT_THAT(saved.error().message, HasSubstr("model gpt"));
}

TEST(Transpose, turns_matrices_that_are_no_multiple_of_anything) {
  std::vector<float> from(37 * 70), to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  transpose(from, 37, 70, to);
  for (std::size_t row = 0; row < 37; ++row)
    for (std::size_t column = 0; column < 70; ++column)
      ASSERT_EQ(to[column * 37 + row], from[row * 70 + column]);
}

}  // namespace
}  // namespace troupe::train
