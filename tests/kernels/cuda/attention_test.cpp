// Attention in one kernel of cuDNN's: what it is asked for, and when it is not.
#include <vector>

#include <gtest/gtest.h>

#include "kernels/internal/network.hpp"
#include "kernels/models.hpp"
#include "tests/kernels/cuda/stand_in/stand_in.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

class FusedAttention : public testing::Test {
protected:
  void SetUp() override { stand_in::reset(); }
  void TearDown() override { stand_in::reset(); }

  /// Graphs that were planned for heads of `dim` floats.
  static std::size_t planned(std::int64_t dim, DType precision, Mode mode = Mode::training) {
    const Model model =
        Model::build("m", {5, 8 * dim}, {Attention{.heads = 4, .kv_heads = 2}}).value();
    const auto network = DeviceNetwork::create(
        model, 2, {.mode = mode, .input_gradient = mode == Mode::training, .precision = precision});
    EXPECT_TRUE(network.ok()) << to_string(network.status().error());
    return stand_in::record().graphs.size();
  }
};

TEST_F(FusedAttention, is_a_graph_for_each_pass_of_16_bits) {
  EXPECT_EQ(planned(8, DType::bf16), 2u);
  EXPECT_TRUE(stand_in::record().matmuls.empty());
  stand_in::reset();
  EXPECT_EQ(planned(16, DType::f16, Mode::inference), 1u);
}

TEST_F(FusedAttention, of_f32_is_products_and_a_softmax) {
  EXPECT_EQ(planned(8, DType::f32), 0u);
  EXPECT_FALSE(stand_in::record().matmuls.empty());
}

TEST_F(FusedAttention, reads_queries_keys_and_values_where_they_lie) {
  planned(8, DType::bf16);
  const auto& product = stand_in::record().graphs.at(0).at(0);
  EXPECT_EQ(product.type, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  EXPECT_EQ(product.inputs[0].dims, (std::vector<std::int64_t>{2, 4, 5, 8}));
  EXPECT_EQ(product.inputs[0].strides, (std::vector<std::int64_t>{320, 8, 64, 1}));
  EXPECT_EQ(product.inputs[1].dims, (std::vector<std::int64_t>{2, 2, 8, 5})) << "transposed";
  EXPECT_EQ(product.inputs[1].strides, (std::vector<std::int64_t>{320, 8, 1, 64}));
  for (const auto& tensor : product.inputs) EXPECT_EQ(tensor.type, CUDNN_DATA_BFLOAT16);
}

TEST_F(FusedAttention, adds_up_no_gradient_in_a_tensor_of_the_callers) {
  planned(8, DType::bf16);
  const auto& last = stand_in::record().graphs.at(1).back();
  EXPECT_EQ(last.type, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  EXPECT_EQ(last.output.type, CUDNN_DATA_BFLOAT16) << "the queries' gradient itself";
  EXPECT_FALSE(last.output.is_virtual);
}

TEST_F(FusedAttention, is_left_to_products_in_f32_where_cudnn_has_nothing_deterministic) {
  EXPECT_EQ(planned(12, DType::bf16), 0u) << "heads that are no whole runs of 8";
  EXPECT_FALSE(stand_in::record().matmuls.empty());
  stand_in::reset();
  stand_in::behaviour().graphs_supported = false;
  EXPECT_EQ(planned(8, DType::bf16), 0u);
  stand_in::reset();
  stand_in::behaviour().engines = {{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}};
  EXPECT_EQ(planned(8, DType::bf16), 0u);
  stand_in::reset();
  stand_in::behaviour().compute_capability = 10;
  EXPECT_EQ(planned(8, DType::bf16), 0u);
}

}  // namespace
}  // namespace troupe::kernels
