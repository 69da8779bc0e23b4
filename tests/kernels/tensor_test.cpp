#include "kernels/tensor.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::kernels {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// 0, 1, 2, ... in memory.
Tensor counted(const Shape& shape) {
  Tensor tensor = Tensor::zeros(DType::i32, shape).value();
  const auto values = tensor.data<std::int32_t>();
  std::iota(values.begin(), values.end(), 0);
  return tensor;
}

/// The elements of a view in its own order.
std::vector<std::int32_t> values_of(const Tensor& view) {
  const Tensor copy = view.contiguous().value();
  const auto values = copy.data<std::int32_t>();
  return {values.begin(), values.end()};
}

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

TEST(Tensor, slices_any_dimension_by_any_step_without_a_copy) {
  Tensor tensor = counted({3, 4});
  const Tensor columns = tensor.slice(1, 1, 3).value();
  EXPECT_EQ(columns.shape(), (Shape{3, 2}));
  EXPECT_EQ(columns.strides(), (Strides{4, 1}));
  EXPECT_FALSE(columns.is_contiguous());
  EXPECT_THAT(values_of(columns), ElementsAre(1, 2, 5, 6, 9, 10));
  EXPECT_THAT(values_of(tensor.slice(1, 0, 4, 3).value()), ElementsAre(0, 3, 4, 7, 8, 11));
  EXPECT_THAT(values_of(tensor.slice(0, 0, 3, 2).value().slice(1, 3, 4).value()),
              ElementsAre(3, 11));
  EXPECT_TRUE(tensor.slice(1, 4, 4).value().is_contiguous()) << "what is empty has no gaps";
  tensor.data<std::int32_t>()[1] = 70;
  EXPECT_THAT(values_of(columns), ElementsAre(70, 2, 5, 6, 9, 10)) << "the same bytes";
}

TEST(Tensor, selects_one_of_a_dimension_which_goes) {
  const Tensor tensor = counted({2, 3, 2});
  EXPECT_THAT(values_of(tensor.select(0, 1).value()), ElementsAre(6, 7, 8, 9, 10, 11));
  const Tensor middle = tensor.select(1, 1).value();
  EXPECT_EQ(middle.shape(), (Shape{2, 2}));
  EXPECT_THAT(values_of(middle), ElementsAre(2, 3, 8, 9));
  EXPECT_THAT(values_of(middle.select(1, 0).value().select(0, 1).value()), ElementsAre(8));
}

TEST(Tensor, puts_dimensions_in_another_order) {
  const Tensor tensor = counted({2, 3, 2});
  const Tensor turned = tensor.transposed(0, 2).value();
  EXPECT_EQ(turned.strides(), (Strides{1, 2, 6}));
  EXPECT_THAT(values_of(turned), ElementsAre(0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11));
  const Tensor rolled = tensor.permuted(std::array<std::size_t, 3>{2, 0, 1}).value();
  EXPECT_EQ(rolled.shape(), (Shape{2, 2, 3}));
  EXPECT_THAT(values_of(rolled), ElementsAre(0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11));
}

TEST(Tensor, repeats_dimensions_of_size_one_without_a_copy) {
  const Tensor column = counted({3, 1});
  const Tensor wide = column.expanded({2, 3, 2}).value();
  EXPECT_EQ(wide.strides(), (Strides{0, 1, 0}));
  EXPECT_EQ(wide.storage().size(), column.storage().size());
  EXPECT_THAT(values_of(wide), ElementsAre(0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2));
  const auto other = column.expanded({2, 2});
  ASSERT_EQ(other.code(), Code::shape_mismatch);
  EXPECT_THAT(other.error().message, testing::AllOf(HasSubstr("i32 [3, 1]"), HasSubstr("[2, 2]")));
  EXPECT_EQ(column.expanded({3}).code(), Code::shape_mismatch);
}

TEST(Tensor, lies_with_the_channels_last_under_the_same_shape) {
  const Tensor images = counted({2, 3, 1, 2});
  const Tensor last = images.contiguous(MemoryFormat::channels_last).value();
  EXPECT_EQ(last.shape(), images.shape());
  EXPECT_EQ(last.strides(), (Strides{6, 1, 6, 3}));
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::channels_last));
  EXPECT_FALSE(last.is_contiguous());
  const Tensor pixels = last.permuted(std::array<std::size_t, 4>{0, 2, 3, 1}).value();
  EXPECT_THAT(pixels.data<std::int32_t>(), ElementsAre(0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11));
  EXPECT_EQ(values_of(last), values_of(images)) << "and back";
  EXPECT_EQ(counted({6}).contiguous(MemoryFormat::channels_last).code(), Code::shape_mismatch);
}

TEST(Tensor, that_is_contiguous_is_its_own_copy) {
  const Tensor tensor = counted({2, 3});
  EXPECT_EQ(tensor.contiguous().value().storage().data(), tensor.storage().data());
  EXPECT_NE(tensor.transposed(0, 1).value().contiguous().value().storage().data(),
            tensor.storage().data());
  EXPECT_TRUE(counted({4, 1, 2}).transposed(0, 1).value().is_contiguous())
      << "it does not matter where a dimension of size 1 is";
}

TEST(Tensor, views_of_what_is_not_there_are_errors) {
  const Tensor tensor = counted({2, 3});
  EXPECT_EQ(tensor.slice(2, 0, 1).code(), Code::invalid_argument);
  for (auto [begin, end, step] : {std::array{-1, 2, 1}, {2, 1, 1}, {0, 4, 1}, {0, 3, 0}})
    EXPECT_EQ(tensor.slice(1, begin, end, step).code(), Code::invalid_argument);
  EXPECT_EQ(tensor.select(1, 3).code(), Code::invalid_argument);
  EXPECT_EQ(tensor.select(0, -1).code(), Code::invalid_argument);
  EXPECT_EQ(tensor.transposed(0, 2).code(), Code::invalid_argument);
  for (const auto& order : {std::vector<std::size_t>{0}, {0, 0}, {0, 2}, {0, 1, 2}})
    EXPECT_EQ(tensor.permuted(order).code(), Code::invalid_argument);
  const auto reshaped = tensor.transposed(0, 1).value().reshaped({6});
  ASSERT_EQ(reshaped.code(), Code::invalid_argument);
  EXPECT_THAT(
      reshaped.error().message,
      HasSubstr("i32 [3, 2] of strides [1, 3] cannot be seen as [6]; take its contiguous()"));
}

TEST(Tensor, of_foreign_strides_stays_within_its_storage) {
  const Buffer buffer = Buffer::allocate(40).value();  // ten
  const auto code_of = [&](Shape shape, std::vector<std::int64_t> strides, std::size_t offset = 0) {
    const auto checked = Strides::checked(strides);
    return checked.ok() ? Tensor::view(buffer, offset, DType::i32, shape, *checked).code()
                        : checked.code();
  };
  constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(code_of({2, 3}, {5, 2}), Code::ok);
  EXPECT_EQ(code_of({2, 3}, {0, 0}, 36), Code::ok);
  EXPECT_EQ(code_of({2, 3}, {6, 2}), Code::shape_mismatch);
  EXPECT_EQ(code_of({2, 3}, {5, 2}, 4), Code::shape_mismatch);
  EXPECT_EQ(code_of({2, 3}, {5, -1}), Code::invalid_argument);
  EXPECT_EQ(code_of({2, 3}, {5}), Code::invalid_argument);
  EXPECT_EQ(code_of({2, 3}, {kHuge, 1}), Code::invalid_argument);
  EXPECT_EQ(code_of({3, 3}, {kHuge / 2, kHuge / 2}), Code::invalid_argument);
  // Strides that nobody steps by have no bound, and views of such do not go wrong.
  const Tensor one = Tensor::view(buffer, 0, DType::i32, {1, 2}, {kHuge, 1}).value();
  EXPECT_TRUE(one.is_contiguous());
  EXPECT_EQ(one.slice(0, 1, 1).value().elements(), 0u);
  const Tensor none = Tensor::view(buffer, 0, DType::i32, {0, 9}, {1, kHuge}).value();
  EXPECT_EQ(none.select(1, 8).value().elements(), 0u);
}

TEST(Tensor, converts_between_floats_of_32_and_16_bits) {
  Tensor tensor = Tensor::zeros(DType::f32, {2, 2}).value();
  const std::array values = {1.0f, -2.5f, 65536.0f, 1.00390625f};  // the last between two of bf16
  std::ranges::copy(values, tensor.data<float>().begin());
  const Tensor turned = tensor.transposed(0, 1).value();
  const auto back = [](const Tensor& x) {
    const Tensor wide = x.to(DType::f32).value();
    return std::vector<float>(wide.data<float>().begin(), wide.data<float>().end());
  };
  const Tensor bf16 = turned.to(DType::bf16).value();
  EXPECT_EQ(describe(bf16), "bf16 [2, 2]");
  EXPECT_THAT(back(bf16), ElementsAre(1.0f, 65536.0f, -2.5f, 1.0f));
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Tensor f16 = turned.to(DType::f16).value();
  EXPECT_EQ(f16.size_in_bytes(), 8u);
  EXPECT_THAT(back(f16), ElementsAre(1.0f, kInfinite, -2.5f, 1.00390625f));
  EXPECT_THAT(back(f16.to(DType::bf16).value()), ElementsAre(1.0f, kInfinite, -2.5f, 1.0f));
  EXPECT_EQ(tensor.to(DType::f32).value().storage().data(), tensor.storage().data());
  const auto whole = tensor.to(DType::i32);
  ASSERT_EQ(whole.code(), Code::not_supported);
  EXPECT_THAT(whole.error().message, HasSubstr("f32 [2, 2] becomes no i32"));
}

TEST(Tensor, on_a_device_says_so) {
  const ComputeDevice device = ComputeDevice::open({Device::simulated}).value();
  const Tensor tensor = Tensor::allocate(DType::f32, {3}, device).value();
  EXPECT_EQ(tensor.device(), Device::simulated);
  EXPECT_EQ(Tensor::allocate(DType::f32, {3}).value().device(), Device::cpu);
  const auto copy = tensor.to(DType::bf16);
  ASSERT_EQ(copy.code(), Code::not_supported);
  EXPECT_THAT(copy.error().message, HasSubstr("bring it to the host first"));
}

TEST(TensorDeathTest, read_as_another_type_aborts_with_both_names) {
  const Tensor tensor = Tensor::zeros(DType::u8, {4}).value();
  EXPECT_DEATH((void)tensor.data<float>(), "u8 \\[4\\] read as f32");
}

TEST(TensorDeathTest, with_gaps_read_as_one_run_aborts_and_says_what_to_do) {
  const Tensor view = Tensor::zeros(DType::f32, {2, 3}).value().transposed(0, 1).value();
  EXPECT_DEATH((void)view.data<float>(),
               "f32 \\[3, 2\\] of strides \\[1, 3\\] is not one run of bytes; take its contiguous");
}

}  // namespace
}  // namespace troupe::kernels
