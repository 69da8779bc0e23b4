#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/compute_device.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/simulated/internal/simulated_backend.hpp"

namespace troupe::kernels {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

std::vector<float> counted(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

bool is_nan(float value) {
  return std::isnan(value);
}

TEST(DeviceName, is_a_kind_and_a_number) {
  EXPECT_EQ(DeviceName::parse("cpu").value(), (DeviceName{Device::cpu, 0}));
  EXPECT_EQ(DeviceName::parse("cuda:3").value(), (DeviceName{Device::cuda, 3}));
  EXPECT_EQ(to_string(DeviceName{Device::simulated, 7}), "simulated:7");
  EXPECT_EQ(to_string(DeviceName{Device::cuda, 0}), "cuda");
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cpu:1", "cuda:99999999999"}) {
    const auto name = DeviceName::parse(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_THAT(name.error().message, AllOf(HasSubstr(text), HasSubstr("cuda:1")));
  }
}

TEST(ComputeDevice, opens_what_there_is) {
  EXPECT_EQ(ComputeDevice().kind(), Device::cpu);
  EXPECT_EQ(ComputeDevice::open({Device::simulated, 2}).value().name(),
            (DeviceName{Device::simulated, 2}));
}

TEST(CachingAllocator, gives_what_was_let_go_to_the_next_of_that_size) {
  const ComputeDevice device = ComputeDevice::open({Device::simulated}).value();
  constexpr std::size_t kBytes = std::size_t{5} << 20;
  const std::byte* first = nullptr;
  {
    const Buffer buffer = device.allocate(kBytes).value();
    EXPECT_EQ(buffer.size(), kBytes);
    EXPECT_EQ(buffer.kind(), MemoryKind::simulated);
    first = buffer.data();
    EXPECT_EQ(device.memory().used, std::size_t{6} << 20) << "rounded up to 2 MiB";
  }
  EXPECT_EQ(device.memory().used, 0u);
  EXPECT_EQ(device.memory().held, std::size_t{6} << 20);
  {
    const Buffer small = device.allocate(1000).value();
    EXPECT_NE(small.data(), first) << "a small one does not waste a large block";
    const Buffer again = device.allocate(kBytes).value();
    EXPECT_EQ(again.data(), first);
    EXPECT_EQ(device.memory().reused, 1u);
    EXPECT_EQ(device.memory().allocations, 3u);
  }
  EXPECT_EQ(device.memory().most_used, (std::size_t{6} << 20) + 1024);
  device.trim();
  EXPECT_EQ(device.memory().held, 0u);
  EXPECT_EQ(device.memory().free, device.memory().total);
}

TEST(CachingAllocator, out_of_memory_says_what_was_asked_held_and_free) {
  const auto backend = simulated::make_backend({.memory = std::size_t{8} << 20}).value();
  {
    const Buffer kept = backend->allocate(std::size_t{4} << 20).value();
    const auto refused = backend->allocate(std::size_t{6} << 20);
    ASSERT_EQ(refused.code(), Code::resource_exhausted);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("simulated has no 6.0 MiB left"), HasSubstr("4.0 MiB are in use"),
                      HasSubstr("4.0 MiB of 8.0 MiB are free"), HasSubstr("smaller batch")));
  }
  EXPECT_TRUE(backend->allocate(std::size_t{6} << 20).ok()) << "what is kept makes room";
}

TEST(CachingAllocator, keeps_a_device_open_for_its_buffers) {
  Buffer buffer;
  {
    const ComputeDevice device = ComputeDevice::open({Device::simulated}).value();
    buffer = device.allocate(100).value();
  }
  EXPECT_EQ(buffer.size(), 100u);
}

/// A device, a stream of it and memory there.
class SimulatedDevice : public testing::Test {
protected:
  static constexpr std::size_t kFloats = 1000;

  float* floats(const Buffer& buffer) {
    return reinterpret_cast<float*>(const_cast<std::byte*>(buffer.data()));
  }

  ComputeDevice device = ComputeDevice::open({Device::simulated}).value();
  Backend& backend = device.backend();
  std::unique_ptr<Stream> stream = backend.make_stream().value();
  Buffer a = device.allocate(kFloats * sizeof(float)).value();
  Buffer b = device.allocate(kFloats * sizeof(float)).value();
};

using SimulatedDeviceDeathTest = SimulatedDevice;

TEST_F(SimulatedDeviceDeathTest, has_memory_that_the_host_cannot_touch) {
  EXPECT_DEATH(std::memset(a.data(), 0, 4), "");
  EXPECT_DEATH(
      {
        volatile float value = *floats(a);
        (void)value;
      },
      "");
}

TEST_F(SimulatedDevice, copies_when_somebody_waits) {
  const std::vector<float> sent = counted(kFloats);
  std::vector<float> returned(kFloats, 0.0f);
  ASSERT_TRUE(stream->copy(a.data(), sent.data(), kFloats * sizeof(float)).ok());
  ASSERT_TRUE(stream->copy(b.data(), a.data(), kFloats * sizeof(float)).ok());
  ASSERT_TRUE(stream->copy(returned.data(), b.data(), kFloats * sizeof(float)).ok());
  EXPECT_THAT(returned, Each(testing::Truly(is_nan)));
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(returned, sent);
}

TEST_F(SimulatedDevice, reads_what_the_host_changes_too_early) {
  std::vector<float> sent = counted(kFloats);
  std::vector<float> returned(kFloats);
  ASSERT_TRUE(stream->copy(a.data(), sent.data(), kFloats * sizeof(float)).ok());
  sent[3] = -1.0f;
  ASSERT_TRUE(stream->copy(returned.data(), a.data(), kFloats * sizeof(float)).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(returned[3], -1.0f);
}

TEST_F(SimulatedDevice, has_memory_that_begins_as_no_number) {
  std::vector<float> returned(kFloats);
  ASSERT_TRUE(stream->copy(returned.data(), a.data(), kFloats * sizeof(float)).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_THAT(returned, Each(testing::Truly(is_nan)));
}

TEST_F(SimulatedDevice, orders_streams_by_events_only) {
  const std::vector<float> sent = counted(kFloats);
  std::vector<float> returned(kFloats);
  const auto other = backend.make_stream().value();
  const auto sum_is_there = backend.make_event().value();
  const auto arrived = backend.make_event().value();
  const auto enqueue_sum = [&] {
    ASSERT_TRUE(stream->zero(a.data(), a.size()).ok());
    ASSERT_TRUE(stream->copy(b.data(), sent.data(), b.size()).ok());
    ASSERT_TRUE(backend.add_into(*stream, floats(a), floats(b), kFloats, 1).ok());
    ASSERT_TRUE(stream->record(*sum_is_there).ok());
  };
  // The mistake: the other stream does not wait.
  enqueue_sum();
  ASSERT_TRUE(other->copy(returned.data(), a.data(), a.size()).ok());
  ASSERT_TRUE(other->record(*arrived).ok());
  ASSERT_TRUE(arrived->synchronize().ok());
  EXPECT_NE(returned, sent);
  ASSERT_TRUE(stream->synchronize().ok());

  enqueue_sum();
  ASSERT_TRUE(other->wait(*sum_is_there).ok());
  ASSERT_TRUE(other->copy(returned.data(), a.data(), a.size()).ok());
  ASSERT_TRUE(other->record(*arrived).ok());
  ASSERT_TRUE(arrived->synchronize().ok());
  EXPECT_EQ(returned, sent);
}

TEST_F(SimulatedDevice, interleaves_its_streams_by_the_seed) {
  // Two streams add to one place without order: what comes out differs between seeds.
  std::vector<std::vector<float>> results;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const ComputeDevice other = ComputeDevice::open({Device::simulated, seed}).value();
    const auto one = other.backend().make_stream().value();
    const auto two = other.backend().make_stream().value();
    const Buffer place = other.allocate(sizeof(float)).value();
    std::vector<float> sent = counted(2), result(1);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(one->copy(floats(place), &sent[0], sizeof(float)).ok());
      ASSERT_TRUE(two->copy(floats(place), &sent[1], sizeof(float)).ok());
    }
    ASSERT_TRUE(two->synchronize().ok());
    ASSERT_TRUE(one->synchronize().ok());
    ASSERT_TRUE(one->copy(result.data(), floats(place), sizeof(float)).ok());
    ASSERT_TRUE(one->synchronize().ok());
    results.push_back(result);
  }
  EXPECT_NE(std::ranges::count(results, std::vector{1.0f}), 0);
  EXPECT_NE(std::ranges::count(results, std::vector{2.0f}), 0);
}

TEST(SimulatedStream, does_what_it_recorded_as_often_as_it_is_given_that) {
  const auto backend = simulated::make_backend({.seed = 2}).value();
  const auto stream = backend->make_stream().value();
  constexpr std::size_t kCount = 100, kBytes = kCount * sizeof(float);
  const std::vector<float> ones(kCount, 1.0f);
  const Buffer sum = backend->allocate(kBytes).value(), one = backend->allocate(kBytes).value();
  auto* const total = reinterpret_cast<float*>(const_cast<std::byte*>(sum.data()));
  const auto* const addend = reinterpret_cast<const float*>(one.data());
  ASSERT_TRUE(stream->zero(total, kBytes).ok());
  ASSERT_TRUE(stream->copy(const_cast<float*>(addend), ones.data(), kBytes).ok());
  ASSERT_TRUE(stream->begin_recording().ok());
  ASSERT_TRUE(backend->add_into(*stream, total, addend, kCount, 1).ok());
  const auto recording = stream->end_recording().value();
  std::vector<float> values(kCount);
  ASSERT_TRUE(stream->copy(values.data(), total, kBytes).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_THAT(values, Each(0.0f)) << "recorded, and not done";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream->enqueue(*recording).ok());
  ASSERT_TRUE(stream->copy(values.data(), total, kBytes).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_THAT(values, Each(3.0f));
}

TEST(SimulatedStream, records_nothing_of_the_host_and_no_events) {
  const auto backend = simulated::make_backend({}).value();
  const auto stream = backend->make_stream().value();
  const auto event = backend->make_event().value();
  Buffer there = backend->allocate(64).value();
  std::vector<std::byte> here(64);
  EXPECT_FALSE(stream->end_recording().ok()) << "none was begun";
  ASSERT_TRUE(stream->begin_recording().ok());
  EXPECT_FALSE(stream->begin_recording().ok());
  EXPECT_EQ(stream->copy(there.data(), here.data(), 64).code(), Code::failed_precondition);
  EXPECT_EQ(stream->copy(here.data(), there.data(), 64).code(), Code::failed_precondition);
  EXPECT_EQ(stream->record(*event).code(), Code::failed_precondition);
  EXPECT_EQ(stream->wait(*event).code(), Code::failed_precondition);
  EXPECT_EQ(stream->synchronize().code(), Code::failed_precondition);
  EXPECT_EQ(stream->end_recording().value(), nullptr) << "nothing was kept";
  EXPECT_TRUE(stream->copy(there.data(), here.data(), 64).ok());
  EXPECT_TRUE(stream->synchronize().ok());
}

}  // namespace
}  // namespace troupe::kernels
