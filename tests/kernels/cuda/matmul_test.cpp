#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/compute_device.hpp"
#include "kernels/internal/network.hpp"
#include "kernels/models.hpp"
#include "kernels/parameters.hpp"
#include "tests/kernels/cuda/stand_in/stand_in.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

using stand_in::MatmulAsked;
using testing::AllOf;
using testing::HasSubstr;

class Matmuls : public testing::Test {
protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override { stand_in::reset(); }

  /// What is asked of cuBLASLt for a training network of these layers.
  std::vector<MatmulAsked> asked(Shape input, std::vector<LayerSpec> layers, std::int64_t batch,
                                 bool input_gradient = true, DType precision = DType::f32) {
    const Model model = Model::build("m", input, std::move(layers)).value();
    const auto network = DeviceNetwork::create(
        model, batch, {.input_gradient = input_gradient, .precision = precision});
    EXPECT_TRUE(network.ok()) << to_string(network.status().error());
    return stand_in::record().matmuls;
  }
};

TEST_F(Matmuls, are_in_f32_without_any_split_of_the_sums) {
  for (const MatmulAsked& product : asked({5, 7}, {Linear{"l", 6}}, 3)) {
    EXPECT_EQ(product.compute, CUBLAS_COMPUTE_32F);
    EXPECT_EQ(product.scale, CUDA_R_32F);
    EXPECT_EQ(product.reductions, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
    EXPECT_EQ(product.most_workspace, std::uint64_t{32} << 20);
    for (const auto& matrix : {product.a, product.b, product.c, product.d})
      EXPECT_EQ(matrix.type, CUDA_R_32F);
  }
}

TEST_F(Matmuls, of_16_bits_are_added_and_given_in_f32) {
  for (const auto& [precision, type] :
       {std::pair{DType::bf16, CUDA_R_16BF}, std::pair{DType::f16, CUDA_R_16F}}) {
    stand_in::reset();
    const auto products = asked({5, 7}, {Linear{"l", 6}}, 3, true, precision);
    ASSERT_EQ(products.size(), 3u);
    for (const MatmulAsked& product : products) {
      EXPECT_EQ(product.compute, CUBLAS_COMPUTE_32F);
      EXPECT_EQ(product.reductions, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
      for (const auto& matrix : {product.a, product.b}) EXPECT_EQ(matrix.type, type);
      for (const auto& matrix : {product.c, product.d}) EXPECT_EQ(matrix.type, CUDA_R_32F);
    }
  }
}

TEST_F(Matmuls, of_a_linear_layer_are_the_transposes_that_cublas_sees_in_row_major_matrices) {
  // 15 rows of 7 features to 6.
  const auto products = asked({5, 7}, {Linear{"l", 6}}, 3);
  ASSERT_EQ(products.size(), 3u);
  const MatmulAsked& forward = products[0];  // y^T [6, 15] = W [6, 7] x^T [7, 15]
  EXPECT_EQ(forward.transpose_a, CUBLAS_OP_T);
  EXPECT_EQ(forward.transpose_b, CUBLAS_OP_N);
  EXPECT_EQ(forward.a.rows, 7u);
  EXPECT_EQ(forward.a.columns, 6u);
  EXPECT_EQ(forward.a.stride, 7);
  EXPECT_EQ(forward.b.rows, 7u);
  EXPECT_EQ(forward.b.columns, 15u);
  EXPECT_EQ(forward.b.stride, 7);
  EXPECT_EQ(forward.c.rows, 6u);
  EXPECT_EQ(forward.c.columns, 15u);
  EXPECT_EQ(forward.c.stride, 6);
  const MatmulAsked& weight = products[1];  // dW^T [7, 6] = x^T [7, 15] dy [15, 6]
  EXPECT_EQ(weight.transpose_a, CUBLAS_OP_N);
  EXPECT_EQ(weight.transpose_b, CUBLAS_OP_T);
  EXPECT_EQ(weight.a.columns, 15u);
  EXPECT_EQ(weight.c.rows, 7u);
  EXPECT_EQ(weight.c.columns, 6u);
  const MatmulAsked& input = products[2];  // dx^T [7, 15] = W^T [7, 6] dy^T [6, 15]
  EXPECT_EQ(input.transpose_a, CUBLAS_OP_N);
  EXPECT_EQ(input.transpose_b, CUBLAS_OP_N);
  EXPECT_EQ(input.a.columns, 6u);
  EXPECT_EQ(input.c.rows, 7u);
  EXPECT_EQ(input.c.columns, 15u);
}

TEST_F(Matmuls, of_an_input_without_a_gradient_are_two) {
  EXPECT_EQ(asked({7}, {Linear{"l", 6}}, 3, /*input_gradient=*/false).size(), 2u);
}

TEST_F(Matmuls, of_parameters_and_activations_are_aligned_to_64_bytes) {
  for (const MatmulAsked& product : asked({7}, {Linear{"l", 6}, Relu{}, Linear{"m", 5}}, 3))
    for (const std::uint32_t alignment :
         {product.alignment_a, product.alignment_b, product.alignment_c, product.alignment_d})
      EXPECT_EQ(alignment, 64u);
}

TEST_F(Matmuls, of_attention_are_batches_of_one_head_of_each_group) {
  // 4 heads of 3 floats in 2 groups, of 5 tokens: queries at 0, 3, 6, 9, keys at 12, values at 18.
  const auto products = asked({5, 24}, {Attention{.heads = 4, .kv_heads = 2}}, 2);
  ASSERT_EQ(products.size(), 6u);
  for (const MatmulAsked& product : products) EXPECT_EQ(product.a.batch, 2);
  const MatmulAsked& scores = products[0];
  EXPECT_EQ(scores.transpose_a, CUBLAS_OP_T);
  EXPECT_EQ(scores.a.batch_stride, 3) << "keys";
  EXPECT_EQ(scores.a.stride, 24);
  EXPECT_EQ(scores.b.batch_stride, 6) << "queries, one of each group";
  EXPECT_EQ(scores.c.batch_stride, 2 * 5 * 5);
  EXPECT_EQ(scores.alignment_a, 4u) << "three floats from the last head";
  EXPECT_EQ(scores.alignment_c, 4u);
  const MatmulAsked& out = products[1];
  EXPECT_EQ(out.c.stride, 12);
  EXPECT_EQ(out.c.batch_stride, 6);
}

TEST_F(Matmuls, without_an_algorithm_are_an_error_that_names_layer_and_sizes) {
  stand_in::behaviour().has_algorithms = false;
  const Model model = Model::build("m", {7}, {Linear{"fc", 6}}).value();
  const auto network = DeviceNetwork::create(model, 3, {});
  ASSERT_EQ(network.code(), Code::not_supported);
  EXPECT_THAT(network.status().error().message,
              AllOf(HasSubstr("linear 'fc': "), HasSubstr("[3, 7] times [7, 6]")));
}

}  // namespace
}  // namespace troupe::kernels
