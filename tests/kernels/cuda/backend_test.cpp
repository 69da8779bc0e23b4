#include "kernels/internal/backend.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/compute_device.hpp"
#include "kernels/internal/network.hpp"
#include "kernels/models.hpp"
#include "kernels/training_state.hpp"
#include "kernels/workspace.hpp"
#include "tests/kernels/cuda/stand_in/stand_in.hpp"

namespace troupe::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CudaBackend : public testing::Test {
protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override { stand_in::reset(); }
};

TEST_F(CudaBackend, opens_a_device_by_its_number) {
  stand_in::behaviour().devices = 3;
  const ComputeDevice device = ComputeDevice::open({Device::cuda, 2}).value();
  EXPECT_EQ(to_string(device.name()), "cuda:2");
  EXPECT_FALSE(device.backend().is_host());
  EXPECT_THAT(device.backend().library_variant(), AllOf(HasSubstr("stand-in"), HasSubstr("cuDNN")));
}

TEST_F(CudaBackend, says_how_many_devices_there_are) {
  stand_in::behaviour().devices = 2;
  const auto device = ComputeDevice::open({Device::cuda, 2});
  ASSERT_EQ(device.code(), Code::not_found);
  EXPECT_THAT(device.error().message, AllOf(HasSubstr("cuda:2"), HasSubstr("2 CUDA devices")));
  stand_in::behaviour() = {.devices = 0, .device_count_error = cudaErrorNoDevice};
  EXPECT_EQ(ComputeDevice::open({Device::cuda, 0}).code(), Code::not_found);
}

TEST_F(CudaBackend, gives_the_drivers_text_if_it_refuses) {
  stand_in::behaviour().device_count_error = cudaErrorInsufficientDriver;
  const auto device = ComputeDevice::open({Device::cuda, 0});
  ASSERT_EQ(device.code(), Code::unavailable);
  EXPECT_THAT(device.error().message, HasSubstr("cudaErrorInsufficientDriver"));
}

TEST_F(CudaBackend, has_products_of_f32_bf16_and_f16) {
  const ComputeDevice device = ComputeDevice::open({Device::cuda, 0}).value();
  for (const DType precision : {DType::f32, DType::bf16, DType::f16})
    EXPECT_TRUE(device.backend().check_precision(precision).ok());
}

TEST_F(CudaBackend, gives_memory_of_the_device_and_pinned_memory) {
  const ComputeDevice device = ComputeDevice::open({Device::cuda, 0}).value();
  const Buffer there = device.allocate(1000).value();
  EXPECT_EQ(there.kind(), MemoryKind::cuda);
  EXPECT_EQ(device.allocate_staging(1000).value().kind(), MemoryKind::pinned);
  EXPECT_EQ(device.memory().used, 1024u);
  EXPECT_EQ(device.memory().total, stand_in::behaviour().memory);
}

TEST_F(CudaBackend, says_what_memory_is_left) {
  const ComputeDevice device = ComputeDevice::open({Device::cuda, 0}).value();
  stand_in::behaviour().memory = std::size_t{1} << 20;
  const auto buffer = device.allocate(std::size_t{4} << 20);
  ASSERT_EQ(buffer.code(), Code::resource_exhausted);
  EXPECT_THAT(buffer.error().message, AllOf(HasSubstr("CUDA device 0"), HasSubstr("4.0 MiB")));
}

TEST_F(CudaBackend, copies_zeroes_and_orders_through_streams_and_events) {
  const ComputeDevice device = ComputeDevice::open({Device::cuda, 0}).value();
  const auto stream = device.backend().make_stream().value();
  const auto other = device.backend().make_stream().value();
  const auto event = device.backend().make_event().value();
  ASSERT_TRUE(event->synchronize().ok()) << "never recorded";
  Buffer there = device.allocate(16).value();
  const std::vector<float> sent = {1, 2, 3, 4};
  std::vector<float> returned(4);
  ASSERT_TRUE(stream->copy(there.data(), sent.data(), 16).ok());
  ASSERT_TRUE(stream->zero(there.data() + 4, 4).ok());
  ASSERT_TRUE(stream->record(*event).ok());
  ASSERT_TRUE(other->wait(*event).ok());
  ASSERT_TRUE(other->copy(returned.data(), there.data(), 16).ok());
  ASSERT_TRUE(other->synchronize().ok());
  EXPECT_EQ(returned, (std::vector<float>{1, 0, 3, 4}));
}

TEST_F(CudaBackend, that_has_no_memory_for_an_update_fails_it_until_the_state_is_written_anew) {
  const ComputeDevice device = ComputeDevice::open({Device::cuda, 0}).value();
  const Model model = Model::build("m", {100}, {Linear{"a", 100}}).value();
  auto optimizer = make_optimizer({.name = "lamb"}, model).value();
  auto initial = TrainingState::Contents{Parameters::initialized(model, 1).value(),
                                         optimizer->initial_state().value()};
  TrainingState state =
      TrainingState::create(device, std::move(optimizer), std::move(initial)).value();
  const auto before = state.copy().value();
  const std::vector<float> gradient(model.flat_size(), 1.0f);
  const std::vector<GradientRun> runs = {{0, gradient}};
  stand_in::behaviour().memory = 0;  // none is left for the norms
  EXPECT_EQ(state.update({}, runs, 1.0f).code(), Code::resource_exhausted);
  stand_in::behaviour().memory = std::size_t{1} << 20;
  EXPECT_EQ(state.update({}, runs, 1.0f).code(), Code::resource_exhausted);
  EXPECT_EQ(state.contents().code(), Code::resource_exhausted) << "nobody knows what is there";
  ASSERT_TRUE(state
                  .write(before.parameters.buffer(),
                         std::vector<Buffer>{before.optimizer_state[0].buffer(),
                                             before.optimizer_state[1].buffer()})
                  .ok());
  EXPECT_TRUE(
      std::ranges::equal(state.contents().value().parameters.values(), before.parameters.values()));
  EXPECT_TRUE(state.update({}, runs, 1.0f).ok());
}

}  // namespace
}  // namespace troupe::kernels
