#include "kernels/tensor.hpp"

#include <array>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::kernels {
namespace {

using testing::HasSubstr;

TEST(Shape, knows_its_sizes_and_prints_them) {
  const Shape shape{6, 1, 5, 5};
  EXPECT_EQ(shape.rank(), 4u);
  EXPECT_EQ(shape.elements(), 150);
  EXPECT_EQ(to_string(shape), "[6, 1, 5, 5]");
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(shape.without_first(), (Shape{1, 5, 5}));
  EXPECT_EQ((Shape{1, 5}).with_first(3), (Shape{3, 1, 5}));
}

TEST(Shape, from_outside_is_checked) {
  const auto code_of = [](std::vector<std::int64_t> dims) { return Shape::checked(dims).code(); };
  EXPECT_EQ(code_of({3, 0}), Code::ok);
  EXPECT_EQ(code_of({3, -1}), Code::invalid_argument);
  EXPECT_EQ(code_of({1, 1, 1, 1, 1, 1, 1}), Code::invalid_argument);
  EXPECT_EQ(code_of({std::int64_t{1} << 40, std::int64_t{1} << 40}), Code::invalid_argument);
  EXPECT_EQ(code_of({0, std::int64_t{1} << 60}), Code::invalid_argument);
}

TEST(Tensor, by_default_has_no_elements) {
  EXPECT_EQ(Tensor{}.elements(), 0u);
  EXPECT_TRUE(Tensor{}.bytes().empty());
}

TEST(Tensor, of_zeros_is_zero_and_as_large_as_its_shape) {
  const Tensor tensor = Tensor::zeros(DType::i32, {2, 3}).value();
  EXPECT_EQ(tensor.size_in_bytes(), 24u);
  EXPECT_THAT(tensor.data<std::int32_t>(), testing::ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(tensor.device(), Device::cpu);
  EXPECT_EQ(describe(tensor), "i32 [2, 3]");
}

TEST(Tensor, views_share_their_storage) {
  Tensor tensor = Tensor::zeros(DType::f32, {4, 2}).value();
  Tensor rows = tensor.rows(1, 3).value();
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  rows.data<float>()[0] = 5.0f;
  EXPECT_EQ(tensor.data<float>()[2], 5.0f);
  const Tensor flat = tensor.reshaped({8}).value();
  EXPECT_EQ(flat.data<float>()[2], 5.0f);
}

TEST(Tensor, views_that_do_not_fit_are_errors_that_name_the_shapes) {
  const Tensor tensor = Tensor::zeros(DType::f32, {4, 2}).value();
  const auto reshaped = tensor.reshaped({3, 3});
  ASSERT_EQ(reshaped.code(), Code::shape_mismatch);
  EXPECT_THAT(reshaped.error().message,
              testing::AllOf(HasSubstr("f32 [4, 2]"), HasSubstr("[3, 3]")));
  for (auto [begin, end] : {std::pair{-1, 2}, {3, 2}, {0, 5}})
    EXPECT_EQ(tensor.rows(begin, end).code(), Code::invalid_argument);
  EXPECT_EQ(Tensor::zeros(DType::f32, {}).value().rows(0, 0).code(), Code::invalid_argument);
}

TEST(Tensor, of_foreign_storage_is_checked) {
  const Buffer buffer = Buffer::allocate(10).value();
  EXPECT_EQ(Tensor::view(buffer, 0, DType::u8, {10}).code(), Code::ok);
  EXPECT_EQ(Tensor::view(buffer, 4, DType::f32, {1}).code(), Code::ok);
  EXPECT_EQ(Tensor::view(buffer, 0, DType::u8, {11}).code(), Code::shape_mismatch);
  EXPECT_EQ(Tensor::view(buffer, 8, DType::f32, {1}).code(), Code::shape_mismatch);
  EXPECT_EQ(Tensor::view(buffer, 11, DType::u8, {0}).code(), Code::shape_mismatch);
  EXPECT_EQ(Tensor::view(buffer, 2, DType::f32, {1}).code(), Code::invalid_argument);
}

TEST(Tensor, on_a_device_says_so) {
  const ComputeDevice device = ComputeDevice::open({Device::simulated}).value();
  const Tensor tensor = Tensor::allocate(DType::f32, {3}, device).value();
  EXPECT_EQ(tensor.device(), Device::simulated);
  EXPECT_EQ(Tensor::allocate(DType::f32, {3}).value().device(), Device::cpu);
}

TEST(TensorDeathTest, read_as_another_type_aborts_with_both_names) {
  const Tensor tensor = Tensor::zeros(DType::u8, {4}).value();
  EXPECT_DEATH((void)tensor.data<float>(), "u8 \\[4\\] read as f32");
}

}  // namespace
}  // namespace troupe::kernels
