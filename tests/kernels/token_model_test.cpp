#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/internal/network.hpp"
#include "kernels/model_builder.hpp"
#include "kernels/models.hpp"
#include "kernels/philox.hpp"
#include "kernels/workspace.hpp"

namespace troupe::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr GptSize kTiny{.layers = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 29};

Model tiny(float dropout = 0.0f) {
  GptSize size = kTiny;
  size.dropout = dropout;
  return make_model("gpt", {.gpt = size}).value();
}

Tensor random_ids(Shape shape, std::uint64_t seed) {
  Tensor ids = Tensor::allocate(DType::i32, shape).value();
  Philox random(seed);
  for (auto& id : ids.data<std::int32_t>()) id = static_cast<std::int32_t>(random.below(29));
  return ids;
}

class TokenModel : public testing::Test {
protected:
  Model model = tiny();
  Workspace workspace = Workspace::create(model).value();
  Parameters parameters = Parameters::initialized(model, 1).value();
  std::vector<float> gradients = std::vector<float>(model.flat_size());
  Tensor ids = random_ids({3, 8}, 1);
  Tensor labels = random_ids({3, 8}, 2);

  std::string error_of(const Tensor& given_ids, const Tensor& given_labels) {
    const auto result = workspace.forward_backward(parameters, given_ids, given_labels, gradients);
    return result.ok() ? "none" : to_string(result.error());
  }
};

TEST_F(TokenModel, has_gpt2s_parameters_by_gpt2s_names_and_one_weight_for_embedding_and_head) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : model.parameters()) names.push_back(info.name);
  const std::vector<std::string> expected = {"wte.weight",
                                             "wpe.weight",
                                             "h.0.ln_1.weight",
                                             "h.0.ln_1.bias",
                                             "h.0.attn.c_attn.weight",
                                             "h.0.attn.c_attn.bias",
                                             "h.0.attn.c_proj.weight",
                                             "h.0.attn.c_proj.bias",
                                             "h.0.ln_2.weight",
                                             "h.0.ln_2.bias",
                                             "h.0.mlp.c_fc.weight",
                                             "h.0.mlp.c_fc.bias",
                                             "h.0.mlp.c_proj.weight",
                                             "h.0.mlp.c_proj.bias"};
  ASSERT_GE(names.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), names.begin()));
  EXPECT_EQ(names[names.size() - 2], "ln_f.weight");
  EXPECT_EQ(names.back(), "ln_f.bias");
  EXPECT_EQ(model.parameter_count(), 29u * 16 + 8 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16);
  EXPECT_EQ(make_model("gpt").value().parameter_count(), 124439808u) << "GPT-2's smallest";
}

TEST_F(TokenModel, starts_with_the_loss_of_a_guess_and_counts_tokens) {
  const LossStats stats = workspace.forward_backward(parameters, ids, labels, gradients).value();
  EXPECT_EQ(stats.count, 24);
  EXPECT_NEAR(stats.loss_sum / 24, std::log(29.0), 0.1);
  EXPECT_EQ(workspace.evaluate(parameters, ids, labels.reshaped({24}).value()).value().loss_sum,
            stats.loss_sum);
  EXPECT_EQ(workspace.predict(parameters, ids).value().shape(), (Shape{3, 8, 29}));
}

TEST_F(TokenModel, says_that_a_shared_weights_gradient_is_ready_when_the_first_layer_added_its) {
  std::vector<float> whole(model.flat_size());
  ASSERT_TRUE(workspace.forward_backward(parameters, ids, labels, whole).ok());
  std::vector<std::string> names;
  const auto ready = [&](const ParameterInfo& info) {
    names.push_back(info.name);
    const auto from = static_cast<std::ptrdiff_t>(info.offset);
    EXPECT_TRUE(std::equal(whole.begin() + from, whole.end(), gradients.begin() + from))
        << info.name;
  };
  ASSERT_TRUE(
      workspace.forward_backward(parameters, ids, labels, gradients, {.ready = ready}).ok());
  EXPECT_EQ(names.size(), model.parameters().size());
  EXPECT_EQ(names.front(), "ln_f.bias");
  EXPECT_EQ(names[names.size() - 2], "wpe.weight");
  EXPECT_EQ(names.back(), "wte.weight");
}

TEST_F(TokenModel, gives_the_same_bits_each_time_and_by_two_threads_each_time) {
  for (const int threads : {1, 2}) {
    Workspace first = Workspace::create(model, {.threads = threads}).value();
    Workspace second = Workspace::create(model, {.threads = threads}).value();
    ASSERT_TRUE(first.forward_backward(parameters, ids, labels, gradients).ok());
    const std::vector<float> expected = gradients;
    ASSERT_TRUE(
        first.forward_backward(parameters, random_ids({5, 8}, 3), random_ids({5, 8}, 4), gradients)
            .ok());
    ASSERT_TRUE(second.forward_backward(parameters, ids, labels, gradients).ok());
    EXPECT_EQ(gradients, expected) << threads;
  }
}

TEST_F(TokenModel, learns_to_repeat_a_sequence) {
  double before = 0.0, after = 0.0;
  for (int step = 0; step < 60; ++step) {
    const LossStats stats = workspace.forward_backward(parameters, ids, labels, gradients).value();
    (step == 0 ? before : after) = stats.loss_sum / 24;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      parameters.values()[i] -= 0.5f / 24.0f * gradients[i];
  }
  EXPECT_LT(after, before / 2);
}

TEST_F(TokenModel, refuses_an_id_outside_the_vocabulary_and_says_where) {
  for (const std::int32_t id : {29, -1}) {
    Tensor wrong = random_ids({3, 8}, 1);
    wrong.data<std::int32_t>()[13] = id;
    EXPECT_THAT(error_of(wrong, labels),
                AllOf(HasSubstr("token 5 of sample 1 is " + std::to_string(id)),
                      HasSubstr("0 to 28"), HasSubstr("invalid_argument")));
  }
}

TEST_F(TokenModel, refuses_what_are_no_ids_or_labels_of_its_shape) {
  EXPECT_THAT(error_of(Tensor::zeros(DType::f32, {3, 8}).value(), labels),
              AllOf(HasSubstr("token ids i32 [batch] + [8]"), HasSubstr("f32 [3, 8]")));
  EXPECT_THAT(error_of(random_ids({3, 7}, 1), labels), HasSubstr("i32 [3, 7]"));
  EXPECT_THAT(error_of(ids, random_ids({3}, 1)), HasSubstr("labels u8 or i32 [3, 8]"));
}

TEST_F(TokenModel, leaves_ignored_labels_out_of_loss_and_count) {
  Workspace ignoring = Workspace::create(model, {.ignored_label = -100}).value();
  for (std::size_t i = 0; i < 8; ++i) labels.data<std::int32_t>()[i] = -100;
  const LossStats stats = ignoring.forward_backward(parameters, ids, labels, gradients).value();
  EXPECT_EQ(stats.count, 16);
  const LossStats rest =
      workspace.evaluate(parameters, ids.rows(1, 3).value(), labels.rows(1, 3).value()).value();
  EXPECT_NEAR(stats.loss_sum, rest.loss_sum, 1e-5);
  EXPECT_THAT(error_of(ids, labels), HasSubstr("label 0 of the batch is -100"));
}

TEST(TokenModelOfDropout, draws_by_the_key_and_not_at_inference) {
  const Model model = tiny(0.3f);
  const Parameters parameters = Parameters::initialized(model, 1).value();
  const Tensor ids = random_ids({2, 8}, 1), labels = random_ids({2, 8}, 2);
  std::vector<float> gradients(model.flat_size());
  const auto loss = [&](const PassKey& key, int threads = 1) {
    Workspace workspace = Workspace::create(model, {.threads = threads}).value();
    return workspace.forward_backward(parameters, ids, labels, gradients, {.key = key})
        .value()
        .loss_sum;
  };
  const double first = loss({1, 2, 3});
  EXPECT_EQ(first, loss({1, 2, 3}));
  EXPECT_NEAR(first, loss({1, 2, 3}, 2), 1e-4);
  for (const PassKey& other : {PassKey{2, 2, 3}, {1, 3, 3}, {1, 2, 4}})
    EXPECT_NE(first, loss(other));
  Workspace workspace = Workspace::create(model).value();
  Workspace without = Workspace::create(tiny()).value();
  EXPECT_EQ(workspace.evaluate(parameters, ids, labels).value().loss_sum,
            without.evaluate(parameters, ids, labels).value().loss_sum);
}

TEST(Dropout, zeroes_its_share_and_keeps_the_mean_and_the_gradients_of_the_same) {
  const Model model = Model::build("m", {4096}, {Linear{"l", 4096}, Dropout{0.25f}}).value();
  Network network = Network::create(model, 2, {.threads = 2}).value();
  Parameters parameters = Parameters::zeros(model).value();
  std::ranges::fill(parameters.values(1), 3.0f);
  const PassKey key{7, 1, 0};
  ASSERT_TRUE(network.forward(parameters.values().data(), &key).ok());
  const std::vector<float> output(network.output().begin(), network.output().end());
  const auto zeros = std::ranges::count(output, 0.0f);
  EXPECT_NEAR(static_cast<double>(zeros) / 8192, 0.25, 0.02);
  EXPECT_EQ(std::ranges::count(output, 4.0f) + zeros, 8192);
  std::ranges::fill(network.output_gradient(), 3.0f);
  std::vector<float> gradients(model.flat_size());
  ASSERT_TRUE(network.backward(parameters.values().data(), gradients.data(), {}).ok());
  const std::size_t bias = model.parameters()[1].offset;
  for (std::size_t i = 0; i < 4096; ++i)
    ASSERT_EQ(gradients[bias + i], output[i] + output[4096 + i]) << i;
}

TEST(ModelOfTokens, says_which_layer_does_not_fit) {
  const auto error_of = [](Shape input, std::vector<LayerSpec> layers) {
    const auto model = Model::build("m", input, std::move(layers));
    return model.ok() ? std::string("none") : to_string(model.error());
  };
  const Embedding embedding{"e", 5, 4};
  EXPECT_THAT(error_of({6}, {embedding, embedding}),
              AllOf(HasSubstr("embedding 'e' takes i32"), HasSubstr("is f32")));
  EXPECT_THAT(error_of({6}, {embedding, PositionEmbedding{"p", 5}}),
              AllOf(HasSubstr("[6, 4]"), HasSubstr("context of 5")));
  EXPECT_THAT(
      error_of({6}, {embedding,
                     Linear{.name = "h", .out_features = 6, .bias = false, .tied_to = "e.weight"}}),
      AllOf(HasSubstr("linear 'h'"), HasSubstr("[6, 4]"), HasSubstr("'e.weight'"),
            HasSubstr("[5, 4]")));
  EXPECT_THAT(error_of({6}, {embedding, Linear{.name = "h", .tied_to = "x.weight"}}),
              AllOf(HasSubstr("'x.weight'"), HasSubstr("before")));
  EXPECT_THAT(error_of({6, 4}, {LayerNorm{"n"}, Linear{.name = "h", .tied_to = "n.weight"}}),
              HasSubstr("'n.weight'"));
  EXPECT_THAT(error_of({6, 10}, {Attention{.heads = 3}}),
              AllOf(HasSubstr("[6, 10]"), HasSubstr("9 * head_dim")));
  EXPECT_THAT(error_of({6, 10}, {Attention{.heads = 3, .kv_heads = 2}}), HasSubstr("multiple"));
  EXPECT_THAT(error_of({6}, {Dropout{1.0f}}), HasSubstr("probability is 1"));
  EXPECT_THAT(error_of({6}, {GroupNorm{"g", 4}}), HasSubstr("4 groups"));
  EXPECT_THAT(error_of({6}, {LayerNorm{"n", 0.0f}}), HasSubstr("epsilon is 0"));
}

}  // namespace
}  // namespace troupe::kernels
