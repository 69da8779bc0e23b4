#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/instruction_set.hpp"
#include "kernels/models.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/patterned_batch.hpp"

namespace troupe::kernels {
namespace {

using testing::HasSubstr;

struct Gradient {
  LossStats loss;
  std::vector<float> values;
};

class Precision : public testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    const Status there = WorkspaceOptions{.precision = DType::bf16}.validate();
    if (!there.ok()) GTEST_SKIP() << there.error().message;
  }

  static Model model() {
    const std::string name = GetParam();
    if (name == "gpt")
      return make_model(
                 "gpt",
                 {.gpt = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocabulary = 50}})
          .value();
    if (name == "resnet18")
      return make_model("resnet18", {.input = {3, 32, 32}, .small_images = true, .width = 16})
          .value();
    return make_model(name).value();
  }

  static Gradient run(const Model& model, const WorkspaceOptions& options,
                      float loss_scale = 1.0f) {
    constexpr std::int64_t kBatch = 8;
    Workspace workspace = Workspace::create(model, options).value();
    const Parameters parameters = Parameters::initialized(model, 2).value();
    const auto [samples, labels] = patterned_batch(model, kBatch);
    Gradient gradient;
    gradient.values.resize(model.flat_size());
    gradient.loss = workspace
                        .forward_backward(parameters, samples, labels, gradient.values,
                                          {.loss_scale = loss_scale})
                        .value();
    return gradient;
  }

  /// |a - b| / |b|.
  static double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0.0, norm = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
      norm += std::pow(static_cast<double>(b[i]), 2);
    }
    return std::sqrt(difference / norm);
  }
};

TEST_P(Precision, of_bf16_is_near_f32_and_not_the_same) {
  const Model model = this->model();
  const Gradient exact = run(model, {});
  const Gradient rounded = run(model, {.precision = DType::bf16});
  EXPECT_NEAR(rounded.loss.loss_sum, exact.loss.loss_sum, 0.02 * exact.loss.loss_sum);
  EXPECT_NE(rounded.values, exact.values);
  // A rounding to 8 bits is off by 2^-9 at most; those of many layers add up, and send some maxima
  // another way.
  EXPECT_LT(distance(rounded.values, exact.values), 0.2);
}

TEST_P(Precision, of_bf16_has_the_same_bits_each_time) {
  const Model model = this->model();
  const WorkspaceOptions options{.threads = 2, .precision = DType::bf16};
  EXPECT_EQ(run(model, options).values, run(model, options).values);
}

TEST_P(Precision, of_bf16_is_the_same_on_a_simulated_device) {
  const Model model = this->model();
  const ComputeDevice device = ComputeDevice::open({Device::simulated, 3}).value();
  EXPECT_EQ(run(model, {.device = device, .precision = DType::bf16}).values,
            run(model, {.precision = DType::bf16}).values);
}

TEST_P(Precision, of_f32_keeps_its_digits_under_a_loss_scale) {
  const Model model = this->model();
  const Gradient plain = run(model, {});
  Gradient scaled = run(model, {}, 1024.0f);
  EXPECT_EQ(scaled.loss.loss_sum, plain.loss.loss_sum);
  for (const ParameterInfo& info : model.parameters()) {
    if (info.kind == ParameterKind::statistic) continue;
    for (std::size_t i = info.offset; i < info.offset + info.elements; ++i)
      scaled.values[i] /= 1024.0f;
  }
  EXPECT_EQ(scaled.values, plain.values);
}

INSTANTIATE_TEST_SUITE_P(Of, Precision, testing::Values("lenet5", "resnet18", "gpt"),
                         [](const auto& x) { return std::string(x.param); });

TEST(PrecisionThatIsNotThere, is_an_error_with_what_to_take) {
  const Status half = WorkspaceOptions{.precision = DType::f16}.validate();
  ASSERT_EQ(half.code(), Code::not_supported);
  EXPECT_THAT(half.error().message, HasSubstr("take bf16 or f32"));
  const Status integers = WorkspaceOptions{.precision = DType::i32}.validate();
  ASSERT_EQ(integers.code(), Code::invalid_argument);
  EXPECT_THAT(integers.error().message, HasSubstr("precision is i32"));
}

}  // namespace
}  // namespace troupe::kernels
