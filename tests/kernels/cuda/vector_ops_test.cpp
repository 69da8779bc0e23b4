#include "kernels/cuda/internal/vector_ops.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/compute_device.hpp"
#include "kernels/cuda/internal/cuda_stream.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/short_floats.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

TEST(ShortFloats, go_to_floats_and_back_unchanged) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (!std::isnan(bf16_value(half))) {
      ASSERT_EQ(bf16_bits(bf16_value(half)), half) << bits;
    }
    if (!std::isnan(f16_value(half))) {
      ASSERT_EQ(f16_bits(f16_value(half)), half) << bits;
    }
  }
  EXPECT_TRUE(std::isnan(bf16_value(bf16_bits(NAN))));
  EXPECT_TRUE(std::isnan(f16_value(f16_bits(NAN))));
}

TEST(ShortFloats, are_the_nearest_and_of_two_the_even_one) {
  // Between each two neighbours: a little below and above the middle, and the middle.
  const auto check = [](auto to, auto from, std::uint16_t last) {
    for (std::uint32_t bits = 0; bits < last; ++bits) {
      const auto low = static_cast<std::uint16_t>(bits),
                 high = static_cast<std::uint16_t>(bits + 1);
      const float middle = from(low) / 2 + from(high) / 2;
      if (middle == 0 || middle < from(low) || middle == from(low)) continue;
      ASSERT_EQ(to(std::nextafter(middle, 0.0f)), low) << bits;
      ASSERT_EQ(to(std::nextafter(middle, INFINITY)), high) << bits;
      ASSERT_EQ(to(middle), bits % 2 == 0 ? low : high) << bits;
      ASSERT_EQ(to(-middle), 0x8000 | (bits % 2 == 0 ? low : high)) << bits;
    }
  };
  check(bf16_bits, bf16_value, 0x7f7f);
  check(f16_bits, f16_value, 0x7bff);
  EXPECT_EQ(f16_bits(65519.0f), 0x7bff);
  EXPECT_EQ(f16_bits(65520.0f), 0x7c00) << "infinite";
  EXPECT_EQ(f16_bits(1e30f), 0x7c00);
  EXPECT_EQ(bf16_bits(INFINITY), 0x7f80);
}

class CudaVectors : public testing::Test {
protected:
  template <class T>
  Buffer send(const std::vector<T>& values) {
    Buffer there = device.allocate(values.size() * sizeof(T)).value();
    EXPECT_TRUE(stream->copy(there.data(), values.data(), there.size()).ok());
    return there;
  }
  template <class T>
  std::vector<T> bring(const Buffer& there) {
    std::vector<T> values(there.size() / sizeof(T));
    EXPECT_TRUE(stream->copy(values.data(), there.data(), there.size()).ok());
    EXPECT_TRUE(stream->synchronize().ok());
    return values;
  }
  template <class T>
  static T* as(Buffer& buffer) {
    return reinterpret_cast<T*>(buffer.data());
  }

  ComputeDevice device = test_device().value();
  std::unique_ptr<Stream> stream = device.backend().make_stream().value();
  cuda::CudaStream& cuda_stream = cuda::cuda_stream(*stream);
};

TEST_F(CudaVectors, become_short_and_long_again) {
  const std::vector<float> values = {1.0f, -0.1f, 3e38f, 1e-6f, 70000.0f};
  const std::size_t n = values.size();
  Buffer wide = send(values), half = device.allocate(n * 2).value();
  ASSERT_TRUE(cuda::to_bf16(cuda_stream, as<float>(wide), as<std::uint16_t>(half), n).ok());
  ASSERT_TRUE(cuda::from_bf16(cuda_stream, as<std::uint16_t>(half), as<float>(wide), n).ok());
  const auto from_bf = bring<float>(wide);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(from_bf[i], bf16_value(bf16_bits(values[i])));
  wide = send(values);
  ASSERT_TRUE(cuda::to_f16(cuda_stream, as<float>(wide), as<std::uint16_t>(half), n).ok());
  ASSERT_TRUE(cuda::from_f16(cuda_stream, as<std::uint16_t>(half), as<float>(wide), n).ok());
  const auto from_f = bring<float>(wide);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(from_f[i], f16_value(f16_bits(values[i])));
}

TEST_F(CudaVectors, are_added_and_packed) {
  Buffer a = send(std::vector<float>{1, 2, 3, 4}), b = send(std::vector<float>{10, 20, 30, 40});
  Buffer sum = device.allocate(16).value(), packed = device.allocate(12).value();
  ASSERT_TRUE(cuda::add(cuda_stream, as<float>(a), as<float>(b), as<float>(sum), 4).ok());
  EXPECT_EQ(bring<float>(sum), (std::vector<float>{11, 22, 33, 44}));
  const cuda::PackedRun runs[] = {{as<float>(sum) + 2, as<float>(packed), 2},
                                  {as<float>(sum), as<float>(packed) + 2, 1}};
  ASSERT_TRUE(cuda::pack(cuda_stream, runs, 2).ok());
  EXPECT_EQ(bring<float>(packed), (std::vector<float>{33, 44, 11}));
}

TEST_F(CudaVectors, of_pixels_go_by_their_channels_table) {
  std::vector<float> tables(512);
  for (std::size_t i = 0; i < 512; ++i) tables[i] = static_cast<float>(i) * 0.5f;
  // Two samples of two channels of three pixels.
  const std::vector<std::uint8_t> bytes = {0, 1, 2, 0, 1, 255, 7, 7, 7, 9, 9, 9};
  Buffer there = send(bytes), of_channels = send(tables);
  Buffer images = device.allocate(bytes.size() * sizeof(float)).value();
  ASSERT_TRUE(
      cuda::normalize_pixels(cuda_stream,
                             {as<std::uint8_t>(there), bytes.size(), as<float>(of_channels), 2, 3},
                             as<float>(images))
          .ok());
  const auto result = bring<float>(images);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(result[i], tables[(i / 3 % 2) * 256 + bytes[i]]) << i;
}

}  // namespace
}  // namespace troupe::kernels
