#include "kernels/model.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/model_builder.hpp"
#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "kernels/state.hpp"

namespace troupe::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<std::string> described(const Model& model) {
  std::vector<std::string> lines;
  for (const ParameterInfo& info : model.parameters())
    lines.push_back(info.name + " " + to_string(info.shape));
  return lines;
}

TEST(LeNet5, has_the_parameters_that_pytorchs_usual_one_has) {
  const Model model = make_model("lenet5").value();
  EXPECT_THAT(described(model),
              testing::ElementsAre(
                  "conv1.weight [6, 1, 5, 5]", "conv1.bias [6]", "conv2.weight [16, 6, 5, 5]",
                  "conv2.bias [16]", "fc1.weight [120, 400]", "fc1.bias [120]",
                  "fc2.weight [84, 120]", "fc2.bias [84]", "fc3.weight [10, 84]", "fc3.bias [10]"));
  EXPECT_EQ(model.parameter_count(), 61'706u);
  EXPECT_EQ(model.output(), (Shape{10}));
}

TEST(LeNet5, of_another_input_is_an_error) {
  const auto model = make_model("lenet5", {.input = {3, 32, 32}});
  ASSERT_EQ(model.code(), Code::shape_mismatch);
  EXPECT_THAT(model.error().message, HasSubstr("[3, 32, 32]"));
}

TEST(Mlp, has_the_hidden_layers_it_is_told) {
  const Model model = make_model("mlp", {.input = {2, 3}, .classes = 4, .hidden = {5}}).value();
  EXPECT_THAT(described(model), testing::ElementsAre("fc1.weight [5, 6]", "fc1.bias [5]",
                                                     "fc2.weight [4, 5]", "fc2.bias [4]"));
  EXPECT_EQ(make_model("mlp", {.hidden = {}}).value().parameters().size(), 2u);
  EXPECT_EQ(make_model("mlp", {.hidden = {0}}).code(), Code::invalid_argument);
}

TEST(ResNet, has_the_parameters_that_torchvisions_has) {
  const auto count = [](std::string_view name) {
    return make_model(name, {.input = {3, 224, 224}, .classes = 1000}).value().parameter_count();
  };
  EXPECT_EQ(count("resnet18"), 11'689'512u);
  EXPECT_EQ(count("resnet34"), 21'797'672u);
  EXPECT_EQ(count("resnet50"), 25'557'032u);
  EXPECT_EQ(count("resnet101"), 44'549'160u);
  const auto lines = described(make_model("resnet50", {.input = {3, 224, 224}}).value());
  EXPECT_THAT(lines, testing::IsSupersetOf({"conv1.weight [64, 3, 7, 7]", "bn1.running_var [64]",
                                            "layer1.0.downsample.0.weight [256, 64, 1, 1]",
                                            "layer1.0.downsample.1.running_mean [256]",
                                            "layer4.2.conv3.weight [2048, 512, 1, 1]",
                                            "layer4.2.bn3.bias [2048]", "fc.weight [10, 2048]"}));
}

TEST(ResNet, of_small_images_keeps_their_size_in_its_first_layers) {
  const Model model = make_model("resnet18", {.input = {1, 28, 28}, .small_images = true}).value();
  EXPECT_EQ(model.layers()[0].output, (Shape{64, 28, 28}));
  EXPECT_EQ(make_model("resnet18", {.input = {784}}).code(), Code::shape_mismatch);
}

TEST(Vgg, has_the_parameters_that_torchvisions_has) {
  const auto described_of = [](const char* name) {
    return described(make_model(name, {.input = {3, 224, 224}, .classes = 1000}).value());
  };
  const auto plain = described_of("vgg16");
  EXPECT_EQ(plain.size(), 2u * 16);
  EXPECT_THAT(std::vector(plain.begin(), plain.begin() + 4),
              testing::ElementsAre("features.0.weight [64, 3, 3, 3]", "features.0.bias [64]",
                                   "features.2.weight [64, 64, 3, 3]", "features.2.bias [64]"));
  EXPECT_THAT(plain,
              testing::IsSupersetOf(
                  {"features.5.weight [128, 64, 3, 3]", "features.10.weight [256, 128, 3, 3]",
                   "features.17.weight [512, 256, 3, 3]", "features.28.weight [512, 512, 3, 3]",
                   "classifier.0.weight [4096, 25088]", "classifier.3.weight [4096, 4096]",
                   "classifier.6.weight [1000, 4096]"}));
  const auto normalized = described_of("vgg16_bn");
  EXPECT_THAT(normalized, testing::IsSupersetOf(
                              {"features.0.weight [64, 3, 3, 3]", "features.1.weight [64]",
                               "features.1.running_var [64]", "features.40.weight [512, 512, 3, 3]",
                               "features.41.running_mean [512]"}));
  const auto count = [](const char* name) {
    return make_model(name, {.input = {3, 224, 224}, .classes = 1000}).value().parameter_count();
  };
  EXPECT_EQ(count("vgg16"), 138357544u);
  EXPECT_EQ(count("vgg16_bn"), 138365992u);
}

TEST(Vgg, takes_images_of_other_sizes_and_may_be_narrow) {
  const Model model =
      make_model("vgg16", {.input = {3, 32, 48}, .classes = 10, .width = 2}).value();
  EXPECT_EQ(model.output(), Shape{10});
  EXPECT_THAT(described(model), testing::IsSupersetOf({"classifier.0.weight [128, 784]",
                                                       "classifier.6.weight [10, 128]"}));
  const auto small = make_model("vgg16", {.input = {3, 16, 16}});
  ASSERT_EQ(small.code(), Code::shape_mismatch);
  EXPECT_THAT(small.error().message, HasSubstr("a window of 2 does not fit"));
  EXPECT_THAT(make_model("vgg16", {.input = {784}}).error().message,
              AllOf(HasSubstr("vgg16"), HasSubstr("[784]")));
}

TEST(Lstm, has_the_parameters_that_pytorchs_has) {
  const Model model = make_model("lstm", {.input = {40, 13},
                                          .classes = 12,
                                          .lstm = {.layers = 2, .width = 32, .dropout = 0.1f}})
                          .value();
  EXPECT_THAT(described(model),
              testing::ElementsAre("lstm.weight_ih_l0 [128, 13]", "lstm.weight_hh_l0 [128, 32]",
                                   "lstm.bias_ih_l0 [128]", "lstm.bias_hh_l0 [128]",
                                   "lstm.weight_ih_l1 [128, 32]", "lstm.weight_hh_l1 [128, 32]",
                                   "lstm.bias_ih_l1 [128]", "lstm.bias_hh_l1 [128]",
                                   "fc.weight [12, 32]", "fc.bias [12]"));
  const Model tokens = make_model("lstm_lm", {.input = {20}, .classes = 50}).value();
  EXPECT_EQ(tokens.output(), (Shape{20, 50}));
  EXPECT_THAT(described(tokens),
              testing::IsSupersetOf({"encoder.weight [50, 128]", "rnn.weight_ih_l0 [512, 128]",
                                     "decoder.weight [50, 128]"}));
}

TEST(Lstm, says_which_size_is_wrong) {
  const auto error_of = [](Shape input, LayerSpec layer) {
    const auto model = Model::build("m", input, {std::move(layer)});
    return model.ok() ? std::string("none") : to_string(model.error());
  };
  EXPECT_THAT(error_of({4, 5}, Lstm{.name = "l", .hidden = 0}),
              AllOf(HasSubstr("lstm 'l'"), HasSubstr("hidden is 0")));
  EXPECT_THAT(error_of({4, 5}, Lstm{.name = "l", .layers = 0}), HasSubstr("layers is 0"));
  EXPECT_THAT(error_of({5}, Lstm{.name = "l"}),
              AllOf(HasSubstr("[time, features]"), HasSubstr("[5]")));
  EXPECT_THAT(error_of({4, 5}, Reshape{{3, 7}}), AllOf(HasSubstr("[4, 5]"), HasSubstr("[3, 7]")));
  EXPECT_THAT(error_of({2, 4, 5}, AdaptivePooling{.height = 0}),
              AllOf(HasSubstr("adaptive average pooling"), HasSubstr("height is 0")));
  EXPECT_THAT(error_of({4, 5}, AdaptivePooling{}), HasSubstr("[channels, height, width]"));
  EXPECT_THAT(make_model("lstm", {.input = {3, 8, 8}}).error().message, HasSubstr("[3, 8, 8]"));
  EXPECT_THAT(make_model("lstm", {.lstm = {.layers = 0}}).error().message,
              HasSubstr("layers is 0"));
  EXPECT_THAT(make_model("lstm_lm").error().message, HasSubstr("[1, 28, 28]"));
}

TEST(Model, has_its_statistics_after_what_is_trained) {
  const Model model =
      Model::build("m", {2, 3, 3}, {BatchNorm{"a"}, BatchNorm{"b"}, Flatten{}, Linear{"c", 2}})
          .value();
  EXPECT_THAT(described(model),
              testing::ElementsAre("a.weight [2]", "a.bias [2]", "b.weight [2]", "b.bias [2]",
                                   "c.weight [2, 18]", "c.bias [2]", "a.running_mean [2]",
                                   "a.running_var [2]", "b.running_mean [2]", "b.running_var [2]"));
  EXPECT_EQ(model.trained_size(), model.parameters()[6].offset);
  EXPECT_EQ(model.layers()[1].parameters, (std::vector<std::size_t>{2, 3, 8, 9}));
  EXPECT_EQ(model.parameter_count(), 2u * 4 + 36 + 2);
  const auto parameters = Parameters::initialized(model, 1).value();
  EXPECT_EQ(parameters.values(0)[0], 1.0f);
  EXPECT_EQ(parameters.values(6)[1], 0.0f);
  EXPECT_EQ(parameters.values(7)[1], 1.0f);
}

TEST(Model, whose_layers_branch_says_what_does_not_fit) {
  ModelBuilder apart("m", {2, 4, 4});
  const auto narrow = apart.add(Convolution{.name = "c", .out_channels = 3}, apart.input());
  apart.add(Add{}, narrow, apart.input());
  apart.add(Linear{"never reached", 1}, narrow);
  EXPECT_THAT(to_string(apart.build().error()),
              AllOf(HasSubstr("add"), HasSubstr("[3, 4, 4]"), HasSubstr("[2, 4, 4]")));
  ModelBuilder unused("m", {2, 4, 4});
  unused.add(Convolution{.name = "c"}, unused.input());
  unused.add(Relu{}, unused.input());
  EXPECT_THAT(to_string(unused.build().error()),
              AllOf(HasSubstr("convolution 'c'"), HasSubstr("no layer uses")));
  ModelBuilder groups("m", {3, 4, 4});
  groups.add(Convolution{.name = "c", .out_channels = 4, .groups = 2}, groups.input());
  EXPECT_THAT(to_string(groups.build().error()), HasSubstr("2 groups do not divide 3"));
}

TEST(Model, of_an_unknown_name_is_an_error_that_says_which_there_are) {
  const auto model = make_model("resnet");
  ASSERT_EQ(model.code(), Code::not_found);
  EXPECT_THAT(model.error().message,
              AllOf(HasSubstr("resnet"), HasSubstr("lenet5"), HasSubstr("mlp")));
}

TEST(Model, lays_parameters_one_after_the_other_aligned_to_64_bytes) {
  const Model model = make_model("lenet5").value();
  std::size_t end = 0;
  for (const ParameterInfo& info : model.parameters()) {
    EXPECT_EQ(info.offset % 16, 0u) << info.name;
    EXPECT_GE(info.offset, end);
    EXPECT_LT(info.offset - end, 16u);
    end = info.offset + info.elements;
  }
  EXPECT_GE(model.flat_size(), end);
  EXPECT_EQ(model.find_parameter("fc1.bias"), 5u);
  EXPECT_EQ(model.find_parameter("fc9.bias"), std::nullopt);
}

TEST(Model, says_which_layer_does_not_fit_which_shape) {
  const auto error_of = [](Shape input, std::vector<LayerSpec> layers) {
    const auto model = Model::build("m", input, std::move(layers));
    return model.ok() ? std::string("none") : to_string(model.error());
  };
  EXPECT_THAT(
      error_of({1, 0, 4}, {Linear{"fc", 3}}),
      AllOf(HasSubstr("linear 'fc'"), HasSubstr("[1, 0, 4]"), HasSubstr("[..., features]")));
  EXPECT_THAT(error_of({9}, {Convolution{.name = "c"}}),
              AllOf(HasSubstr("convolution 'c'"), HasSubstr("[9]")));
  EXPECT_THAT(error_of({1, 4, 4}, {Convolution{.name = "c", .kernel = 7, .padding = 1}}),
              AllOf(HasSubstr("window of 7"), HasSubstr("[1, 4, 4]"), HasSubstr("shape_mismatch")));
  EXPECT_THAT(error_of({1, 4, 4}, {Pooling{.stride = 0}}),
              AllOf(HasSubstr("max pooling"), HasSubstr("stride is 0")));
  EXPECT_THAT(error_of({1, 4, 4}, {Pooling{.padding = 2}}), HasSubstr("padding 2"));
  EXPECT_THAT(error_of({4}, {Linear{"a", 3}, Linear{"a", 3}}), HasSubstr("two layers named 'a'"));
  EXPECT_THAT(error_of({4}, {}), HasSubstr("no layers"));
}

TEST(Parameters, start_as_a_function_of_the_seed) {
  const Model model = make_model("lenet5").value();
  const auto first = Parameters::initialized(model, 1).value();
  EXPECT_TRUE(std::ranges::equal(first.values(), Parameters::initialized(model, 1)->values()));
  EXPECT_FALSE(std::ranges::equal(first.values(), Parameters::initialized(model, 2)->values()));
}

TEST(Parameters, start_uniform_within_one_by_the_root_of_the_inputs) {
  const Model model = make_model("lenet5").value();
  const auto parameters = Parameters::initialized(model, 1).value();
  const std::size_t weight = *model.find_parameter("fc1.weight");
  const float bound = 1.0f / std::sqrt(400.0f);
  double squares = 0.0;
  for (std::size_t index : {weight, weight + 1})
    for (float value : parameters.values(index)) ASSERT_LE(std::abs(value), bound);
  for (float value : parameters.values(weight))
    squares += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(squares / 48000, 1.0 / 400 / 3, 1.0 / 400 / 3 * 0.03);
}

TEST(Parameters, have_zeros_between_them) {
  const Model model = make_model("lenet5").value();
  const auto parameters = Parameters::initialized(model, 1).value();
  EXPECT_EQ(parameters.values()[150], 0.0f);
  EXPECT_EQ(parameters.values()[159], 0.0f);
}

TEST(Parameters, are_copied_by_clone_only) {
  const Model model = make_model("mlp").value();
  auto parameters = Parameters::initialized(model, 1).value();
  Parameters same = parameters;
  const Parameters copy = parameters.clone().value();
  same.values()[0] = 7.0f;
  EXPECT_EQ(parameters.values()[0], 7.0f);
  EXPECT_NE(copy.values()[0], 7.0f);
}

TEST(Parameters, in_a_foreign_buffer_must_fit_it) {
  const Model model = make_model("mlp").value();
  const std::size_t bytes = model.flat_size() * sizeof(float);
  EXPECT_TRUE(Parameters::in(model, Buffer::allocate(bytes).value()).ok());
  EXPECT_EQ(Parameters::in(model, Buffer::allocate(bytes - 4).value()).code(),
            Code::shape_mismatch);
  const Buffer larger = Buffer::allocate(bytes + 4).value();
  EXPECT_EQ(Parameters::in(model, larger.slice(4, bytes)).code(), Code::invalid_argument);
}

TEST(State, is_the_parameters_by_name_and_shares_their_bytes) {
  const Model model = make_model("lenet5").value();
  auto parameters = Parameters::zeros(model).value();
  auto state = state_of(parameters);
  ASSERT_EQ(state.size(), 10u);
  EXPECT_EQ(state[4].name, "fc1.weight");
  EXPECT_EQ(state[4].tensor.shape(), (Shape{120, 400}));
  state[4].tensor.data<float>()[3] = 2.0f;
  EXPECT_EQ(parameters.values(4)[3], 2.0f);
  EXPECT_EQ(state_of(parameters, "optimizer.momentum.")[0].name, "optimizer.momentum.conv1.weight");
}

}  // namespace
}  // namespace troupe::kernels
