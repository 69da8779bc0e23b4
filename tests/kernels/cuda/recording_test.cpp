// Passes as CUDA graphs, on the stand-in.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/compute_device.hpp"
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
