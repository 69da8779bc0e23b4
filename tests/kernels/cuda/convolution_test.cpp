#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/internal/network.hpp"
#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "tests/kernels/cuda/stand_in/stand_in.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

using stand_in::ConvolutionPlanned;
using testing::ElementsAre;
using testing::HasSubstr;

class Convolutions : public testing::Test {
protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override { stand_in::reset(); }

  Result<DeviceNetwork> make(Shape input, Convolution convolution, std::int64_t batch,
                             NetworkOptions options = {.input_gradient = true}) {
    const Model model = Model::build("m", input, {std::move(convolution)}).value();
    return DeviceNetwork::create(model, batch, options);
  }
  std::vector<ConvolutionPlanned> planned(Shape input, Convolution convolution, std::int64_t batch,
                                          NetworkOptions options = {.input_gradient = true}) {
    const auto network = make(input, std::move(convolution), batch, options);
    EXPECT_TRUE(network.ok()) << to_string(network.status().error());
    return stand_in::record().convolutions;
  }
};

TEST_F(Convolutions, are_described_with_row_major_images_and_weights) {
  const auto plans = planned(
      {4, 9, 8},
      {.name = "c", .out_channels = 6, .kernel = 3, .stride = 2, .padding = 1, .groups = 2}, 5);
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].type, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  EXPECT_EQ(plans[1].type, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  EXPECT_EQ(plans[2].type, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  for (const ConvolutionPlanned& plan : plans) {
    EXPECT_THAT(plan.x.dims, ElementsAre(5, 4, 9, 8));
    EXPECT_THAT(plan.x.strides, ElementsAre(288, 72, 8, 1));
    EXPECT_THAT(plan.weight.dims, ElementsAre(6, 2, 3, 3)) << "two of four channels: two groups";
    EXPECT_THAT(plan.weight.strides, ElementsAre(18, 9, 3, 1));
    EXPECT_THAT(plan.y.dims, ElementsAre(5, 6, 5, 4));
    EXPECT_THAT(plan.y.strides, ElementsAre(120, 20, 4, 1));
    EXPECT_THAT(plan.strides, ElementsAre(2, 2));
    EXPECT_THAT(plan.dilations, ElementsAre(1, 1));
    EXPECT_THAT(plan.pre_paddings, ElementsAre(1, 1));
    EXPECT_THAT(plan.post_paddings, ElementsAre(1, 1));
    EXPECT_EQ(plan.compute, CUDNN_DATA_FLOAT);
    EXPECT_EQ(plan.mode, CUDNN_CROSS_CORRELATION);
    EXPECT_EQ(plan.alpha, 1.0f);
    EXPECT_EQ(plan.beta, 0.0f);
    for (const auto& tensor : {plan.x, plan.weight, plan.y}) {
      EXPECT_EQ(tensor.type, CUDNN_DATA_FLOAT);
      EXPECT_EQ(tensor.alignment, 16);
    }
  }
}

TEST_F(Convolutions, with_dilation_count_it_from_one) {
  const auto plans = planned(
      {2, 8, 7}, {.name = "c", .out_channels = 3, .kernel = 3, .padding = 2, .dilation = 2}, 1);
  EXPECT_THAT(plans.at(0).dilations, ElementsAre(2, 2));
}

TEST_F(Convolutions, of_inference_are_one_and_without_an_input_gradient_two) {
  const Convolution spec{.name = "c", .out_channels = 3, .kernel = 3};
  EXPECT_EQ(planned({2, 8, 7}, spec, 1, {.mode = Mode::inference}).size(), 1u);
  stand_in::reset();
  EXPECT_EQ(planned({2, 8, 7}, spec, 1, {}).size(), 2u);
}

TEST_F(Convolutions, take_the_first_engine_that_is_exact_and_can_be_made) {
  stand_in::behaviour().engines = {
      {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
      {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
      {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4},
      {CUDNN_NUMERICAL_NOTE_FFT},
      {},
  };
  stand_in::behaviour().unsupported_engines = {5};
  for (const auto& plan : planned({2, 8, 7}, {.name = "c", .out_channels = 3, .kernel = 3}, 1))
    EXPECT_EQ(plan.engine, 6);
}

TEST_F(Convolutions, go_to_the_fallback_where_the_heuristics_have_nothing) {
  stand_in::behaviour().heuristics_supported = false;
  EXPECT_EQ(planned({2, 8, 7}, {.name = "c", .out_channels = 3, .kernel = 3}, 1).size(), 3u);
}

TEST_F(Convolutions, without_an_exact_engine_are_an_error) {
  stand_in::behaviour().engines = {{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, {}};
  stand_in::behaviour().unsupported_engines = {1};
  const auto network = make({2, 8, 7}, {.name = "c", .out_channels = 3, .kernel = 3}, 1);
  ASSERT_EQ(network.code(), Code::not_supported);
  EXPECT_THAT(network.status().error().message, HasSubstr("deterministic"));
  EXPECT_THAT(network.status().error().message, HasSubstr("the reason")) << "cuDNN's own";
}

TEST_F(Convolutions, of_16_bits_are_described_channels_last_and_copied_to_f32) {
  const auto plans = planned({3, 9, 8}, {.name = "c", .out_channels = 6, .kernel = 3}, 5,
                             {.input_gradient = true, .precision = DType::bf16});
  ASSERT_EQ(plans.size(), 3u);
  const auto result_of = [&](std::size_t i) {
    return i == 0 ? plans[i].y : i == 1 ? plans[i].weight : plans[i].x;
  };
  for (std::size_t i = 0; i < 3; ++i) {
    const ConvolutionPlanned& plan = plans[i];
    EXPECT_THAT(plan.x.dims, ElementsAre(5, 8, 9, 8)) << "three channels, filled up";
    EXPECT_THAT(plan.x.strides, ElementsAre(576, 1, 64, 8));
    EXPECT_THAT(plan.weight.dims, ElementsAre(8, 8, 3, 3));
    EXPECT_THAT(plan.weight.strides, ElementsAre(72, 1, 24, 8));
    EXPECT_THAT(plan.y.dims, ElementsAre(5, 8, 7, 6));
    EXPECT_EQ(plan.compute, CUDNN_DATA_FLOAT);
    for (const auto& tensor : {plan.x, plan.weight, plan.y}) {
      const bool is_result = tensor.id == result_of(i).id;
      EXPECT_EQ(tensor.type, is_result ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16);
      EXPECT_EQ(tensor.is_virtual, is_result);
    }
    ASSERT_TRUE(plan.copy.has_value());
    EXPECT_EQ(plan.copy->type, CUDNN_DATA_FLOAT);
    EXPECT_FALSE(plan.copy->is_virtual);
  }
}

TEST_F(Convolutions, of_16_bits_take_tensor_cores_that_add_in_f32) {
  stand_in::behaviour().engines = {
      {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION},
      {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
      {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
  };
  for (const auto& plan : planned({2, 8, 7}, {.name = "c", .out_channels = 3, .kernel = 3}, 1,
                                  {.precision = DType::f16})) {
    EXPECT_EQ(plan.engine, 2);
    EXPECT_EQ(plan.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? plan.x.type
                                                                                  : plan.y.type,
              CUDNN_DATA_HALF);
  }
}

TEST_F(Convolutions, of_16_bits_without_an_engine_are_computed_in_f32) {
  stand_in::behaviour().rounded_convolutions_supported = false;
  for (const auto& plan : planned({2, 8, 7}, {.name = "c", .out_channels = 3, .kernel = 3}, 1,
                                  {.precision = DType::bf16}))
    EXPECT_EQ(plan.x.type, CUDNN_DATA_FLOAT);
}

}  // namespace
}  // namespace troupe::kernels
