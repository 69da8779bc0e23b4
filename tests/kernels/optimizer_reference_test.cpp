// Optimizers against PyTorch and the papers' formulas: reference/optimizers.py says how.
#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/layers/linear.hpp"
#include "kernels/optimizer.hpp"

namespace troupe::kernels {
namespace {

/// A weight [3, 4] and a bias [3], as the reference has them one behind the other.
Model reference_model() {
  return Model::build("reference", {4}, {Linear{.name = "fc", .out_features = 3}}).value();
}

void set(Parameters& parameters, const std::vector<double>& values) {
  ASSERT_EQ(values.size(), 15u);
  for (std::size_t i = 0; i < 12; ++i) parameters.values(0)[i] = static_cast<float>(values[i]);
  for (std::size_t i = 0; i < 3; ++i) parameters.values(1)[i] = static_cast<float>(values[12 + i]);
}

OptimizerOptions options_of(const nlohmann::json& json) {
  OptimizerOptions x;
  x.name = json.at("name");
  x.momentum = json.value("momentum", x.momentum);
  x.nesterov = json.value("nesterov", x.nesterov);
  x.beta1 = json.value("beta1", x.beta1);
  x.beta2 = json.value("beta2", x.beta2);
  x.epsilon = json.value("epsilon", x.epsilon);
  x.trust_coefficient = json.value("trust_coefficient", x.trust_coefficient);
  x.weight_decay = json.value("weight_decay", x.weight_decay);
  x.decay_vectors = json.value("decay_vectors", x.decay_vectors);
  return x;
}

TEST(Optimizers, follow_pytorch_and_the_papers) {
  const auto reference = nlohmann::json::parse(
      std::ifstream(TROUPE_SOURCE_DIR "/tests/kernels/reference/optimizers.json"));
  const Model model = reference_model();
  constexpr float kBatch = 8;  // gradients are sums over samples; exact
  for (const auto& test : reference.at("cases")) {
    const auto optimizer = make_optimizer(options_of(test.at("options")), model).value();
    auto weights = Parameters::zeros(model).value(), gradient = weights.clone().value();
    auto state = optimizer->initial_state().value();
    set(weights, reference.at("weights"));
    std::uint64_t update = 0;
    for (const double rate : reference.at("rates")) {
      set(gradient, reference.at("gradients").at(update));
      for (float& x : gradient.values()) x *= kBatch;
      const std::array whole{GradientRun{0, gradient.values()}};
      UpdateFactors factors{++update, rate, 1 / kBatch};
      if (const double most = test.at("clip_norm"); most > 0)
        factors.gradient_scale = static_cast<float>(
            clip_factor(gradient_norm(model, whole) / double{kBatch}, most) / double{kBatch});
      optimizer->update(factors, whole, weights, state);
      const auto expected = test.at("after").find(std::to_string(update));
      if (expected == test.at("after").end()) continue;
      for (std::size_t i = 0; i < 15; ++i)
        EXPECT_NEAR(i < 12 ? weights.values(0)[i] : weights.values(1)[i - 12],
                    expected->at(i).get<double>(), 1e-6)
            << test.at("options") << " update " << update << " element " << i;
    }
  }
}

}  // namespace
}  // namespace troupe::kernels
