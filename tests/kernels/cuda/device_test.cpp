#include <cstring>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/compute_device.hpp"
#include "kernels/internal/backend.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

class CudaDevice : public testing::Test {
protected:
  static constexpr std::size_t kFloats = 1 << 20;
  static constexpr std::size_t kBytes = kFloats * sizeof(float);

  ComputeDevice device = test_device().value();
  Backend& backend = device.backend();
  std::unique_ptr<Stream> stream = backend.make_stream().value();
  std::unique_ptr<Event> event = backend.make_event().value();
};

TEST_F(CudaDevice, says_what_it_is_and_has) {
  EXPECT_FALSE(backend.library_variant().empty());
  EXPECT_GT(device.memory().total, std::size_t{1} << 30);
  RecordProperty("device", backend.library_variant());
}

TEST_F(CudaDevice, that_is_not_there_is_an_error_with_the_number_that_are) {
  const auto missing = ComputeDevice::open({Device::cuda, 999});
  ASSERT_EQ(missing.code(), Code::not_found);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("this process sees"));
}

TEST_F(CudaDevice, copies_between_pinned_memory_and_its_own_and_back) {
  Buffer sent = device.allocate_staging(kBytes).value();
  Buffer returned = device.allocate_staging(kBytes).value();
  Buffer there = device.allocate(kBytes).value(), beside = device.allocate(kBytes).value();
  auto* const values = reinterpret_cast<float*>(sent.data());
  std::iota(values, values + kFloats, 1.0f);
  ASSERT_TRUE(stream->copy(there.data(), sent.data(), kBytes).ok());
  ASSERT_TRUE(stream->copy(beside.data(), there.data(), kBytes).ok());
  const auto other = backend.make_stream().value();
  ASSERT_TRUE(stream->record(*event).ok());
  ASSERT_TRUE(other->wait(*event).ok());
  ASSERT_TRUE(other->copy(returned.data(), beside.data(), kBytes).ok());
  ASSERT_TRUE(other->synchronize().ok());
  EXPECT_EQ(std::memcmp(returned.data(), sent.data(), kBytes), 0);
}

TEST_F(CudaDevice, adds_into_what_is_there) {
  Buffer a = device.allocate(kBytes).value(), b = device.allocate(kBytes).value();
  std::vector<float> values(kFloats);
  std::iota(values.begin(), values.end(), 0.5f);
  ASSERT_TRUE(stream->copy(a.data(), values.data(), kBytes).ok());
  ASSERT_TRUE(stream->copy(b.data(), values.data(), kBytes).ok());
  ASSERT_TRUE(backend
                  .add_into(*stream, reinterpret_cast<float*>(a.data()),
                            reinterpret_cast<const float*>(b.data()), kFloats, 1)
                  .ok());
  std::vector<float> sums(kFloats);
  ASSERT_TRUE(stream->copy(sums.data(), a.data(), kBytes).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  for (std::size_t i = 0; i < kFloats; ++i) ASSERT_EQ(sums[i], values[i] + values[i]) << i;
}

TEST_F(CudaDevice, out_of_memory_is_an_error_and_the_next_allocation_works) {
  const auto buffer = device.allocate(std::size_t{1} << 50);
  ASSERT_EQ(buffer.code(), Code::resource_exhausted);
  EXPECT_TRUE(device.allocate(1000).ok());
}

}  // namespace
}  // namespace troupe::kernels
