// Passes as CUDA graphs, on the stand-in.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/compute_device.hpp"
#include "kernels/custom_layer.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/models.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/cuda/stand_in/stand_in.hpp"

namespace troupe::kernels {
namespace {

using testing::HasSubstr;

class CudaRecordings : public testing::Test {
protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override {
    ::unsetenv("TROUPE_CUDA_GRAPHS");
    stand_in::reset();
  }

  /// What `steps` steps of a device give, each with other pixels.
  std::pair<std::vector<float>, PassStatistics> run(int steps) {
    const Model model = make_model("lenet5").value();
    const ComputeDevice device = ComputeDevice::open({Device::cuda, 0}).value();
    Workspace workspace = Workspace::create(model, {.device = device}).value();
    const Parameters parameters = Parameters::initialized(model, 1).value();
    Tensor images = Tensor::zeros(DType::u8, {2, 28, 28}).value();
    const Tensor labels = Tensor::zeros(DType::u8, {2}).value();
    std::vector<float> gradients(model.flat_size());
    for (int step = 0; step < steps; ++step) {
      images.data<std::uint8_t>()[static_cast<std::size_t>(step)] = 200;
      const auto stats = workspace.forward_backward(parameters, images, labels, gradients);
      EXPECT_TRUE(stats.ok()) << to_string(stats.error());
    }
    return {gradients, workspace.statistics()};
  }
};

TEST_F(CudaRecordings, are_made_at_the_second_pass_and_launched_from_then_on) {
  const auto passes = run(5).second;
  EXPECT_EQ(passes.passes, 5u);
  EXPECT_EQ(passes.replayed, 3u);
  // Gradients that leave while others are computed cut a pass into pieces.
  const int pieces = stand_in::record().graphs_made;
  EXPECT_GE(pieces, 1);
  EXPECT_LE(pieces, 3);
  EXPECT_EQ(stand_in::record().graph_launches, 4 * pieces);
}

TEST_F(CudaRecordings, may_be_switched_off) {
  const auto recorded = run(4).first;
  ::setenv("TROUPE_CUDA_GRAPHS", "0", 1);
  const auto [plain, passes] = run(4);
  EXPECT_EQ(passes.replayed, 0u);
  EXPECT_EQ(passes.not_recorded, "");
  EXPECT_EQ(plain, recorded);
  ::setenv("TROUPE_CUDA_GRAPHS", "no", 1);
  const auto refused = ComputeDevice::open({Device::cuda, 0});
  ASSERT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("TROUPE_CUDA_GRAPHS is \"no\""));
}

TEST_F(CudaRecordings, are_done_without_if_cuda_does_not_take_them) {
  const auto recorded = run(4).first;
  stand_in::behaviour().captures = false;
  const auto [plain, passes] = run(4);
  EXPECT_EQ(passes.replayed, 0u);
  EXPECT_THAT(passes.not_recorded, HasSubstr("recording of a pass: CUDA says"));
  EXPECT_EQ(plain, recorded);
}

TEST_F(CudaRecordings, leave_nothing_for_the_host_to_wait_for_before_the_end) {
  const Model model = make_model("lenet5").value();
  const ComputeDevice device = ComputeDevice::open({Device::cuda, 0}).value();
  Workspace workspace = Workspace::create(model, {.device = device}).value();
  const Parameters parameters = Parameters::initialized(model, 1).value();
  const Tensor images = Tensor::zeros(DType::u8, {2, 28, 28}).value();
  const Tensor labels = Tensor::zeros(DType::u8, {2}).value();
  Buffer pinned = device.allocate_staging(model.flat_size() * sizeof(float)).value();
  const std::span<float> gradients{reinterpret_cast<float*>(pinned.data()), model.flat_size()};
  for (int step = 0; step < 4; ++step)
    ASSERT_TRUE(workspace.forward_backward(parameters, images, labels, gradients).ok());
  EXPECT_EQ(stand_in::record().waiting_copies, 0);
}

class Doubled final : public CustomLayer {
public:
  Result<Shape> output_shape(std::span<const Shape> inputs) const override { return inputs[0]; }
  Status forward(const CustomForward& pass) const override {
    std::ranges::transform(pass.inputs[0], pass.output.begin(), [](float x) { return 2 * x; });
    return {};
  }
  Status backward(const CustomBackward& pass) const override {
    std::ranges::transform(pass.output_gradient, pass.input_gradients[0].begin(),
                           [](float x) { return 2 * x; });
    return {};
  }
};

TEST_F(CudaRecordings, are_not_made_of_passes_that_the_host_has_a_part_in) {
  const Model model =
      Model::build("m", {3}, {Linear{"a", 4}, Custom{"mine", std::make_shared<Doubled>()}}).value();
  Workspace workspace =
      Workspace::create(model, {.device = ComputeDevice::open({Device::cuda, 0}).value()}).value();
  Workspace on_cpu = Workspace::create(model).value();
  const Parameters parameters = Parameters::initialized(model, 1).value();
  Tensor x = Tensor::zeros(DType::f32, {1, 3}).value();
  const Tensor label = Tensor::zeros(DType::u8, {1}).value();
  std::vector<float> gradients(model.flat_size()), expected(model.flat_size());
  for (int step = 0; step < 4; ++step) {
    x.data<float>()[0] = static_cast<float>(step);
    ASSERT_TRUE(workspace.forward_backward(parameters, x, label, gradients).ok());
    ASSERT_TRUE(on_cpu.forward_backward(parameters, x, label, expected).ok());
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_NEAR(gradients[i], expected[i], 1e-6f) << step << " " << i;
  }
  EXPECT_EQ(workspace.statistics().replayed, 0u);
  EXPECT_THAT(workspace.statistics().not_recorded, HasSubstr("a layer of one's own"));
}

TEST_F(CudaRecordings, end_with_an_error_after_what_cannot_be_captured_and_the_stream_goes_on) {
  const ComputeDevice device = ComputeDevice::open({Device::cuda, 0}).value();
  const auto stream = device.backend().make_stream().value();
  Buffer memory = device.allocate(64).value();
  EXPECT_FALSE(stream->end_recording().ok()) << "none was begun";
  ASSERT_TRUE(stream->begin_recording().ok());
  EXPECT_FALSE(stream->synchronize().ok());
  EXPECT_EQ(stream->end_recording().code(), Code::unavailable);
  EXPECT_TRUE(stream->zero(memory.data(), 64).ok());
  EXPECT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(memory.data()[63], std::byte{0});
  ASSERT_TRUE(stream->begin_recording().ok());
  EXPECT_EQ(stream->end_recording().value(), nullptr) << "nothing was kept";
}

}  // namespace
}  // namespace troupe::kernels
