#include <string>

#include <gtest/gtest.h>

#include "kernels/model_builder.hpp"
#include "kernels/models.hpp"
#include "tests/kernels/gradient_check.hpp"

namespace troupe::kernels {
namespace {

/// Every layer, by each kernel that there is for it.
class Layers : public testing::TestWithParam<KernelChoice> {
protected:
  void check(Shape input, std::vector<LayerSpec> layers, std::int64_t batch = 3) {
    check_gradients({input, std::move(layers), batch, GetParam()});
  }
};

TEST_P(Layers, convolution_of_one_channel_with_padding) {
  check({1, 6, 7}, {Convolution{.name = "c", .out_channels = 3, .kernel = 5, .padding = 2}});
}
TEST_P(Layers, convolution_of_several_channels_without_padding) {
  check({3, 6, 5}, {Convolution{.name = "c", .out_channels = 4, .kernel = 3}});
}
TEST_P(Layers, convolution_of_more_channels_than_a_register_holds) {
  check({4, 4, 4}, {Convolution{.name = "c", .out_channels = 17, .kernel = 3, .padding = 1}}, 1);
}
TEST_P(Layers, convolution_with_a_stride) {
  check({2, 7, 8},
        {Convolution{.name = "c", .out_channels = 3, .kernel = 3, .stride = 2, .padding = 1}});
}
TEST_P(Layers, convolution_of_single_pixels) {
  check({3, 3, 4}, {Convolution{.name = "c", .out_channels = 5, .kernel = 1}});
}
TEST_P(Layers, convolution_with_a_window_as_large_as_its_input) {
  check({2, 5, 5}, {Convolution{.name = "c", .out_channels = 3, .kernel = 5}});
}
TEST_P(Layers, convolution_whose_windows_hang_over_every_edge) {
  check({1, 2, 3}, {Convolution{.name = "c", .out_channels = 2, .kernel = 5, .padding = 3}});
}
TEST_P(Layers, linear) {
  check({7}, {Linear{"l", 5}});
}
TEST_P(Layers, linear_of_one_feature) {
  check({1}, {Linear{"l", 1}}, 1);
}
TEST_P(Layers, linear_of_sizes_that_are_no_multiples_of_anything) {
  check({37}, {Linear{"l", 23}}, 19);
}
TEST_P(Layers, linear_of_a_batch_of_many_groups) {
  check({11}, {Linear{"l", 13}}, 40);
}
TEST_P(Layers, relu_of_features) {
  check({9}, {Relu{}});
}
TEST_P(Layers, relu_of_images) {
  check({2, 3, 5}, {Relu{}});
}
TEST_P(Layers, batch_norm) {
  check({3, 4, 5}, {BatchNorm{"b"}}, 4);
  check({2, 5, 9}, {BatchNorm{"b"}, Relu{}});
}
TEST_P(Layers, synchronized_batch_norm) {
  check({3, 4, 5}, {BatchNorm{.name = "b", .synchronized = true}}, 4);
  check({2, 5, 9}, {BatchNorm{.name = "b", .synchronized = true}, Relu{}});
}
TEST_P(Layers, max_pooling) {
  check({2, 6, 4}, {Pooling{}});
}
TEST_P(Layers, max_pooling_that_leaves_an_edge_out) {
  check({2, 5, 7}, {Pooling{}});
}
TEST_P(Layers, max_pooling_with_overlap_and_padding) {
  check({2, 6, 5}, {Pooling{.kernel = 3, .stride = 2, .padding = 1}});
}
TEST_P(Layers, average_pooling) {
  check({2, 6, 4}, {Pooling{.kind = Pooling::Kind::average}});
}
TEST_P(Layers, average_pooling_with_overlap_and_padding) {
  check({2, 6, 5},
        {Pooling{.kind = Pooling::Kind::average, .kernel = 3, .stride = 2, .padding = 1}});
}
TEST_P(Layers, adaptive_pooling_to_a_size_that_divides_its_input) {
  for (const auto kind : {Pooling::Kind::average, Pooling::Kind::max})
    check({2, 6, 4}, {AdaptivePooling{kind, 3, 2}});
}
TEST_P(Layers, adaptive_pooling_whose_windows_overlap) {
  for (const auto kind : {Pooling::Kind::average, Pooling::Kind::max})
    check({2, 7, 5}, {AdaptivePooling{kind, 3, 4}});
}
TEST_P(Layers, adaptive_pooling_to_more_pixels_and_to_as_many) {
  for (const auto kind : {Pooling::Kind::average, Pooling::Kind::max}) {
    check({2, 2, 3}, {AdaptivePooling{kind, 3, 7}});
    check({2, 3, 4}, {Tanh{}, AdaptivePooling{kind, 3, 4}, Flatten{}, Linear{"l", 3}});
  }
}
TEST_P(Layers, adaptive_pooling_after_a_convolution) {
  check({3, 9, 9},
        {Convolution{.name = "c", .out_channels = 5, .kernel = 3},
         AdaptivePooling{.height = 2, .width = 2}, Flatten{}, Linear{"l", 3}},
        9);
}
TEST_P(Layers, flatten_between_images_and_features) {
  check({3, 2, 4}, {Flatten{}, Linear{"l", 3}});
}
TEST_P(Layers, convolution_relu_and_max_pooling_in_a_row) {
  check({2, 9, 9}, {Convolution{.name = "c", .out_channels = 5, .kernel = 3, .padding = 1}, Relu{},
                    Pooling{}});
}
TEST_P(Layers, convolution_relu_and_pooling_by_three) {
  check({1, 11, 8}, {Convolution{.name = "c", .out_channels = 2, .kernel = 3}, Relu{},
                     Pooling{.kernel = 3, .stride = 3}});
}
TEST_P(Layers, convolution_relu_and_overlapping_pooling) {
  check({1, 8, 8}, {Convolution{.name = "c", .out_channels = 2, .kernel = 3}, Relu{},
                    Pooling{.kernel = 3, .stride = 2, .padding = 1}});
}
TEST_P(Layers, a_whole_small_network_of_more_than_one_group_of_samples) {
  check({1, 8, 8},
        {Convolution{.name = "c1", .out_channels = 2, .kernel = 3, .padding = 1}, Relu{}, Pooling{},
         Convolution{.name = "c2", .out_channels = 3, .kernel = 3}, Relu{},
         Pooling{.kind = Pooling::Kind::average}, Flatten{}, Linear{"f1", 5}, Relu{},
         Linear{"f2", 4}},
        9);
}

std::string name_of(const testing::TestParamInfo<KernelChoice>& info) {
  switch (info.param) {
    case KernelChoice::automatic:
      return "automatic";
    case KernelChoice::portable:
      return "portable";
    case KernelChoice::library:
      return "library";
  }
  return "unknown";
}

INSTANTIATE_TEST_SUITE_P(By, Layers,
                         testing::Values(KernelChoice::automatic, KernelChoice::portable,
                                         KernelChoice::library),
                         name_of);

TEST(LayersByTwoThreads, of_every_kind_are_right_too) {
  check_gradients({{3, 8, 8},
                   {Convolution{.name = "c", .out_channels = 8, .kernel = 3, .padding = 1}, Relu{},
                    Pooling{}, Flatten{}, Linear{"f", 4}},
                   5,
                   KernelChoice::library,
                   2});
}

/// What only the library computes.
class LibraryLayers : public testing::TestWithParam<int> {
protected:
  void check(Shape input, std::vector<LayerSpec> layers, std::int64_t batch = 3) {
    check_gradients({input, std::move(layers), batch, KernelChoice::automatic, GetParam()});
  }
  void check(Result<Model> model, std::int64_t batch = 3) {
    ASSERT_TRUE(model.ok()) << to_string(model.error());
    check_gradients(*model, {{}, {}, batch, KernelChoice::automatic, GetParam()});
  }
};

TEST_P(LibraryLayers, convolution_without_a_bias) {
  check({3, 6, 5}, {Convolution{.name = "c", .out_channels = 4, .kernel = 3, .bias = false}});
}
TEST_P(LibraryLayers, convolution_of_groups) {
  check({4, 5, 5}, {Convolution{.name = "c", .out_channels = 6, .kernel = 3, .groups = 2}});
}
TEST_P(LibraryLayers, convolution_of_each_channel_alone) {
  check({4, 5, 5},
        {Convolution{.name = "c", .out_channels = 4, .kernel = 3, .padding = 1, .groups = 4}});
}
TEST_P(LibraryLayers, convolution_with_dilation) {
  check({2, 8, 7},
        {Convolution{.name = "c", .out_channels = 3, .kernel = 3, .padding = 2, .dilation = 2}});
}
TEST_P(LibraryLayers, linear_without_a_bias) {
  check({7}, {Linear{.name = "l", .out_features = 5, .bias = false}});
}
TEST_P(LibraryLayers, linear_on_tokens) {
  check({5, 7}, {Linear{"l", 6}});
}
TEST_P(LibraryLayers, linear_on_many_tokens_of_several_axes) {
  check({3, 40, 33}, {Linear{.name = "l", .out_features = 17, .bias = false}}, 2);
}
TEST_P(LibraryLayers, linear_layers_that_share_a_weight) {
  check({6},
        {Linear{"a", 6}, Tanh{}, Linear{.name = "b", .out_features = 6, .tied_to = "a.weight"},
         Tanh{}, Linear{.name = "c", .out_features = 6, .bias = false, .tied_to = "a.weight"}});
}
TEST_P(LibraryLayers, embedding) {
  check({7}, {Embedding{"e", 5, 9}});
}
TEST_P(LibraryLayers, embedding_with_positions_of_a_longer_context) {
  check({6}, {Embedding{"e", 11, 20}, PositionEmbedding{"p", 8}, Silu{}}, 4);
}
TEST_P(LibraryLayers, position_embedding_of_an_input_of_floats) {
  check({3, 5}, {PositionEmbedding{"p", 3}});
}
TEST_P(LibraryLayers, embedding_whose_weight_is_the_heads_too) {
  check({6}, {Embedding{"e", 5, 9}, Tanh{},
              Linear{.name = "h", .out_features = 5, .bias = false, .tied_to = "e.weight"}});
}
TEST_P(LibraryLayers, layer_norm_of_features) {
  check({37}, {LayerNorm{"n"}});
}
TEST_P(LibraryLayers, layer_norm_of_more_rows_than_it_is_split_into) {
  check({9, 20}, {LayerNorm{"n"}}, 5);
}
TEST_P(LibraryLayers, layer_norm_of_rows_for_several_threads) {
  check({40, 260}, {LayerNorm{"n"}}, 2);
}
TEST_P(LibraryLayers, layer_norm_before_other_layers) {
  check({4, 6}, {Linear{"a", 16}, LayerNorm{"n"}, Gelu{}, Linear{"b", 3}});
}
TEST_P(LibraryLayers, rms_norm) {
  check({4, 35}, {Linear{"a", 35}, RmsNorm{"n"}});
}
TEST_P(LibraryLayers, group_norm_of_images) {
  check({6, 3, 5}, {GroupNorm{"n", 3}});
}
TEST_P(LibraryLayers, group_norm_of_one_group_and_of_each_channel_alone) {
  check({4, 4, 5}, {GroupNorm{"a", 1}, Silu{}, GroupNorm{"b", 4}});
}
TEST_P(LibraryLayers, group_norm_after_a_convolution) {
  check({3, 4, 4}, {Convolution{.name = "c", .out_channels = 32, .kernel = 3, .padding = 1},
                    GroupNorm{"n", 8}, Relu{}});
}
TEST_P(LibraryLayers, gelu_by_tanh) {
  check({5, 13}, {Gelu{}});
}
TEST_P(LibraryLayers, gelu_by_erf) {
  check({5, 13}, {Gelu{Gelu::Form::erf}});
}
TEST_P(LibraryLayers, silu_sigmoid_and_tanh) {
  check({50}, {Silu{}, Sigmoid{}, Tanh{}});
}
TEST_P(LibraryLayers, activations_of_channels_that_do_not_fill_their_blocks) {
  const Convolution convolution{.name = "a", .out_channels = 19, .kernel = 3};
  const Convolution last{.name = "b", .out_channels = 3, .kernel = 1};
  for (const LayerSpec& activation : std::vector<LayerSpec>{Gelu{}, Silu{}, Sigmoid{}, Tanh{}})
    check({17, 4, 4}, {convolution, activation, last}, 2);
}
TEST_P(LibraryLayers, activation_of_elements_for_several_threads) {
  check({33, 256}, {Gelu{}}, 2);
}
TEST_P(LibraryLayers, concat_of_channels_and_of_an_inner_axis) {
  for (const std::int64_t axis : {0, 1}) {
    ModelBuilder model("concat", {3, 4, 4});
    const auto part = [&](const std::string& name, std::int64_t channels) {
      return model.add(Convolution{.name = name, .out_channels = channels, .kernel = 1},
                       model.input());
    };
    model.add(Concat{axis}, {part("a", 3), model.input(), part("b", axis == 0 ? 5 : 3)});
    check(model.build());
  }
}
TEST_P(LibraryLayers, attention_of_one_head) {
  check({5, 12}, {Attention{.heads = 1, .causal = false}});
}
TEST_P(LibraryLayers, causal_attention_of_several_heads) {
  check({7, 36}, {Attention{.heads = 3}});
}
TEST_P(LibraryLayers, attention_of_more_tokens_than_a_block) {
  for (const bool causal : {false, true})
    check({150, 12}, {Attention{.heads = 2, .causal = causal}}, 1);
}
TEST_P(LibraryLayers, attention_whose_queries_share_keys_and_values) {
  check({70, 32}, {Attention{.heads = 4, .kv_heads = 2}}, 2);
  check({6, 24}, {Attention{.heads = 4, .kv_heads = 1, .causal = false}});
}
TEST_P(LibraryLayers, lstm) {
  check({6, 5}, {Lstm{.name = "l", .hidden = 4}}, 3);
}
TEST_P(LibraryLayers, lstm_of_which_the_last_step_counts) {
  check({6, 5}, {Lstm{.name = "l", .hidden = 4, .sequence = false}, Linear{"o", 3}}, 3);
}
TEST_P(LibraryLayers, lstm_of_several_layers) {
  check({5, 7}, {Lstm{.name = "l", .hidden = 3, .layers = 3}}, 2);
  check({5, 3}, {Lstm{.name = "l", .hidden = 6, .layers = 2, .sequence = false}}, 2);
}
TEST_P(LibraryLayers, lstm_of_one_step_of_one_sample) {
  for (const bool sequence : {true, false})
    check({1, 3}, {Lstm{.name = "l", .hidden = 2, .layers = 2, .sequence = sequence}}, 1);
}
TEST_P(LibraryLayers, lstm_of_rows_for_several_threads) {
  check({3, 9}, {Lstm{.name = "l", .hidden = 65}}, 37);
}
TEST_P(LibraryLayers, lstm_between_other_layers) {
  check({4, 6}, {Linear{"a", 5}, Tanh{}, Lstm{.name = "l", .hidden = 4}, LayerNorm{"n"}}, 3);
}
TEST_P(LibraryLayers, lstm_as_a_classifier_of_the_rows_of_images_and_as_a_language_model) {
  check(make_model("lstm", {.input = {1, 5, 4}, .classes = 3, .lstm = {.layers = 2, .width = 6}}));
  check(make_model("lstm_lm", {.input = {6}, .classes = 11, .lstm = {.width = 5}}));
}
TEST_P(LibraryLayers, a_decoder) {
  check(make_model("gpt",
                   {.gpt = {.layers = 2, .heads = 2, .width = 16, .context = 9, .vocabulary = 23}}),
        2);
}
TEST_P(LibraryLayers, synchronized_batch_norm_of_many_channels_after_a_convolution) {
  for (const std::int64_t channels : {8, 16, 20, 32})
    check({3, 4, 4},
          {Convolution{.name = "c", .out_channels = channels, .kernel = 1, .bias = false},
           BatchNorm{.name = "b", .synchronized = true}, Relu{}});
}
TEST_P(LibraryLayers, batch_norm_of_many_channels_after_a_convolution) {
  check({3, 4, 4},
        {Convolution{.name = "c", .out_channels = 32, .kernel = 3, .padding = 1, .bias = false},
         BatchNorm{"b"}});
}
TEST_P(LibraryLayers, batch_norm_and_relu) {
  check({16, 3, 3}, {Convolution{.name = "c", .out_channels = 16, .kernel = 1, .bias = false},
                     BatchNorm{"b"}, Relu{}});
}
TEST_P(LibraryLayers, global_average_pooling) {
  check({5, 3, 4}, {GlobalAveragePooling{}, Flatten{}, Linear{"l", 3}});
}
TEST_P(LibraryLayers, an_input_that_is_added_to_itself) {
  ModelBuilder model("double", {2, 3, 3});
  model.add(Add{}, model.input(), model.input());
  check(model.build());
}
TEST_P(LibraryLayers, a_value_that_goes_to_three_layers) {
  ModelBuilder model("three", {8, 4, 4});
  const auto x = model.add(Convolution{.name = "a", .out_channels = 8, .kernel = 3, .padding = 1},
                           model.input());
  const auto b = model.add(Convolution{.name = "b", .out_channels = 8, .kernel = 1}, x);
  const auto c = model.add(BatchNorm{"c"}, x);
  model.add(Relu{}, model.add(Add{}, model.add(Add{}, b, c), x));
  check(model.build());
}
TEST_P(LibraryLayers, a_sum_whose_gradient_goes_on_unchanged) {
  ModelBuilder model("sum", {3, 4, 4});
  const auto a = model.add(Convolution{.name = "a", .out_channels = 5, .kernel = 3}, model.input());
  const auto b = model.add(Convolution{.name = "b", .out_channels = 5, .kernel = 3}, model.input());
  const auto sum = model.add(Add{}, a, b);
  const auto c = model.add(Convolution{.name = "c", .out_channels = 5, .kernel = 1}, sum);
  model.add(Add{}, c, sum);
  check(model.build());
}
TEST_P(LibraryLayers, a_residual_block) {
  ModelBuilder model("block", {8, 4, 4});
  const auto part = [&](const std::string& name, ModelBuilder::Value x, std::int64_t stride,
                        std::int64_t channels, std::int64_t kernel) {
    return model.add(BatchNorm{"norm of " + name}, model.add(Convolution{.name = name,
                                                                         .out_channels = channels,
                                                                         .kernel = kernel,
                                                                         .stride = stride,
                                                                         .padding = kernel / 2,
                                                                         .bias = false},
                                                             x));
  };
  auto x = model.input();
  for (const std::int64_t channels : {8, 16}) {
    const std::string n = std::to_string(channels);
    auto y = model.add(Relu{}, part("a" + n, x, channels / 8, channels, 3));
    y = part("b" + n, y, 1, channels, 3);
    if (channels > 8) x = part("d" + n, x, 2, channels, 1);
    x = model.add(Relu{}, model.add(Add{}, y, x));
  }
  model.add(Linear{"fc", 3}, model.add(Flatten{}, model.add(GlobalAveragePooling{}, x)));
  check(model.build());
}

INSTANTIATE_TEST_SUITE_P(By, LibraryLayers, testing::Values(1, 2), [](const auto& instance) {
  return instance.param == 1 ? "one_thread" : "two_threads";
});

}  // namespace
}  // namespace troupe::kernels
