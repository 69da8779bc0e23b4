#include "actors/train/replica.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/checkpoint/checkpoint_store.hpp"
#include "kernels/models.hpp"
#include "kernels/philox.hpp"
#include "kernels/simulated/internal/simulated_backend.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

kernels::Model small_model() {
  return kernels::make_model("mlp", {.input = {40}, .classes = 4, .hidden = {30}}).value();
}

kernels::Model model_with_statistics() {
  return kernels::Model::build(
             "normed", {2, 5, 8},
             {kernels::BatchNorm{"a"}, kernels::Linear{"b", 30}, kernels::BatchNorm{"c"}})
      .value();
}

JobConfig job(const OptimizerConfig& optimizer) {
  JobConfig config;
  config.data.batch = 4;
  config.optimizer = optimizer;
  return config;
}

std::unique_ptr<Replica> replica(const OptimizerConfig& optimizer,
                                 const kernels::Model& model = small_model(),
                                 const kernels::ComputeDevice& device = {}) {
  return Replica::make(job(optimizer), model, device, "", {.steps_per_epoch = 10}).value();
}

std::vector<float> weights(const Replica& replica) {
  const Buffer buffer = replica.snapshot().value().parameters;
  const auto* const values = reinterpret_cast<const float*>(buffer.data());
  return {values, values + replica.model().flat_size()};
}

/// The gradient of a step, of all the flat layout: zero between the parameters.
std::vector<float> gradient(const Replica& replica, std::uint64_t step) {
  std::vector<float> values(replica.model().flat_size());
  kernels::Philox random(step);
  for (const auto& info : replica.model().parameters())
    for (std::size_t i = 0; i < info.elements; ++i) values[info.offset + i] = random.normal();
  return values;
}

void take(Replica& replica, std::uint64_t step) {
  const auto values = gradient(replica, step);
  ASSERT_TRUE(replica.take_step(std::vector<kernels::GradientRun>{{0, values}}).ok());
}

TEST(Replica, takes_a_step_from_any_split_to_the_same_state) {
  for (const char* name : {"sgd", "adam", "adamw", "lamb", "lars"}) {
    auto whole = replica({.name = name, .clip_norm = 0.5});
    auto parts = replica({.name = name, .clip_norm = 0.5});
    const auto values = gradient(*whole, 1);
    const std::span<const float> all = values;
    take(*whole, 1);
    ASSERT_TRUE(parts
                    ->take_step(std::vector<kernels::GradientRun>{
                        {0, all.first(16)}, {16, all.subspan(16, 784)}, {800, all.subspan(800)}})
                    .ok());
    EXPECT_EQ(whole->hash().value(), parts->hash().value()) << name;
    EXPECT_EQ(whole->steps_done(), 1u);
  }
}

TEST(Replica, clips_a_gradient_to_the_norm_that_the_job_allows) {
  // 1240 elements of deviation 1 / batch have a norm of about 9; the step is as long as allowed.
  auto clipped = replica({.lr = 1, .clip_norm = 0.5}), free = replica({.lr = 1});
  const auto before = weights(*clipped);
  const auto distance = [&](const Replica& x) {
    const auto now = weights(x);
    double sum = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto d = static_cast<double>(now[i]) - static_cast<double>(before[i]);
      sum += d * d;
    }
    return std::sqrt(sum);
  };
  take(*clipped, 1);
  take(*free, 1);
  EXPECT_NEAR(distance(*clipped), 0.5, 1e-5);
  EXPECT_GT(distance(*free), 5);
}

TEST(Replica, goes_on_as_the_one_whose_state_it_takes) {
  for (const char* name : {"sgd", "adamw", "lars"}) {
    auto one = replica({.name = name}), other = replica({.name = name});
    take(*one, 1);
    one->skip();
    take(*one, 2);
    const auto copy = one->snapshot().value();
    ASSERT_TRUE(other
                    ->install(copy.steps_done, copy.skips, copy.loss_scale, copy.parameters,
                              copy.optimizer_state, {})
                    .ok());
    EXPECT_EQ(other->hash().value(), one->hash().value()) << name;
    take(*one, 3);
    take(*other, 3);
    EXPECT_EQ(other->hash().value(), one->hash().value()) << name;
  }
}

TEST(LossScale, is_halved_at_an_overflow_and_doubled_after_so_many_steps_without) {
  const OptimizerConfig config{.loss_scale = 8, .loss_scale_steps = 3};
  LossScale scale(config);
  EXPECT_EQ(scale.value(), 8.0f);
  scale.add_overflow();
  EXPECT_EQ(scale.value(), 4.0f);
  scale.add_finite(config);
  scale.add_finite(config);
  const LossScale kept = LossScale::from_text(scale.to_text()).value();
  EXPECT_EQ(kept, scale);
  scale.add_finite(config);
  EXPECT_EQ(scale.value(), 8.0f);
  for (int i = 0; i < 5; ++i) scale.add_overflow();
  EXPECT_EQ(scale.value(), 1.0f);
  EXPECT_FALSE(scale.can_shrink());
  for (const char* text : {"", "8", "3 0", "0.5 0", "8 -", "8 1 2", "nan 0", "inf 0"})
    EXPECT_EQ(LossScale::from_text(text).code(), Code::corrupt_data) << text;
}

TEST(Replica, refuses_the_state_of_another_optimizer_and_stays_as_it_was) {
  auto adam = replica({.name = "adam"}), sgd = replica({.name = "sgd", .momentum = 0.9});
  take(*adam, 1);
  const auto before = sgd->hash().value();
  const auto copy = adam->snapshot().value();
  const auto status = sgd->install(copy.steps_done, copy.skips, copy.loss_scale, copy.parameters,
                                   copy.optimizer_state, {});
  EXPECT_EQ(status.code(), Code::shape_mismatch);
  EXPECT_THAT(status.error().message, testing::HasSubstr("2 buffers"));
  EXPECT_EQ(sgd->hash().value(), before);
}

TEST(Replica, names_its_state_in_a_snapshot_as_pytorch_does) {
  const auto names = [](const OptimizerConfig& optimizer) {
    const auto snapshot = replica(optimizer)->snapshot().value();
    std::vector<std::string> state;
    for (std::size_t i = snapshot.weights; i < snapshot.tensors.size(); ++i)
      if (snapshot.tensors[i].name.ends_with("fc1.bias")) state.push_back(snapshot.tensors[i].name);
    return state;
  };
  using testing::ElementsAre;
  EXPECT_THAT(names({}), ElementsAre());
  EXPECT_THAT(names({.momentum = 0.9}), ElementsAre("optimizer.momentum.fc1.bias"));
  EXPECT_THAT(names({.name = "adamw"}),
              ElementsAre("optimizer.exp_avg.fc1.bias", "optimizer.exp_avg_sq.fc1.bias"));
}

TEST(Replica, does_not_count_a_skipped_step_as_an_update) {
  auto skipping = replica({.name = "adam"}), other = replica({.name = "adam"});
  skipping->skip();
  take(*skipping, 1);
  take(*other, 1);
  EXPECT_EQ(weights(*skipping), weights(*other));
}

// --- on a device of its own ----------------------------------------------------------------------

kernels::ComputeDevice simulated(std::uint32_t seed) {
  return kernels::ComputeDevice::open({kernels::Device::simulated, seed}).value();
}

class ReplicaOnADevice : public testing::TestWithParam<OptimizerConfig> {};

TEST_P(ReplicaOnADevice, has_the_hash_and_the_bytes_of_the_host) {
  const auto model = model_with_statistics();
  const auto host = replica(GetParam(), model);
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    const auto device = replica(GetParam(), model, simulated(seed));
    const auto other = replica(GetParam(), model, simulated(seed));
    EXPECT_EQ(device->hash().value(), replica(GetParam(), model)->hash().value());
    for (std::uint64_t step = 1; step <= 3; ++step) {
      if (seed == 0) take(*host, step);
      take(*device, step);
    }
    EXPECT_EQ(device->hash().value(), host->hash().value());
    const auto a = device->snapshot().value(), b = host->snapshot().value();
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (std::size_t i = 0; i < a.tensors.size(); ++i) {
      EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
      EXPECT_TRUE(std::ranges::equal(a.tensors[i].bytes, b.tensors[i].bytes)) << a.tensors[i].name;
    }
    // A node that joins takes the state of another one, and they go on alike.
    ASSERT_TRUE(
        other->install(b.steps_done, b.skips, b.loss_scale, b.parameters, b.optimizer_state, {})
            .ok());
    EXPECT_EQ(other->hash().value(), host->hash().value());
    take(*device, 4);
    take(*other, 4);
    EXPECT_EQ(other->hash().value(), device->hash().value());
  }
}

TEST_P(ReplicaOnADevice, goes_on_from_a_checkpoint) {
  const TemporaryFolder folder;
  const auto model = model_with_statistics();
  const auto first = replica(GetParam(), model, simulated(1));
  take(*first, 1);
  take(*first, 2);
  const auto snapshot = first->snapshot().value();
  const auto config = job(GetParam());
  const auto written = CheckpointStore(folder.path(), 1)
                           .save(snapshot.steps_done, snapshot.tensors,
                                 {{std::string(kResultsHashKey), config.results_hash()},
                                  {std::string(kLossScaleKey), snapshot.loss_scale.to_text()}})
                           .value();
  for (const auto& device : {simulated(2), kernels::ComputeDevice()}) {
    const auto resumed =
        Replica::make(config, model, device, written.path.string(), {.steps_per_epoch = 10})
            .value();
    EXPECT_EQ(resumed->hash().value(), first->hash().value());
    EXPECT_EQ(resumed->steps_done(), 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, ReplicaOnADevice,
    testing::Values(OptimizerConfig{.name = "sgd", .momentum = 0.9},
                    OptimizerConfig{.name = "adam", .clip_norm = 0.5},
                    OptimizerConfig{.name = "adamw", .weight_decay = 0.1},
                    OptimizerConfig{.name = "lamb", .weight_decay = 0.1, .clip_norm = 0.5},
                    OptimizerConfig{.name = "lars", .momentum = 0.9, .weight_decay = 0.1}),
    [](const auto& x) { return x.param.name; });

TEST(Replica, tells_a_checkpoint_of_another_job_by_what_differs) {
  const TemporaryFolder folder;
  const auto first = replica({.name = "adam"});
  const auto snapshot = first->snapshot().value();
  const auto config = job({.name = "adam"});
  const auto resume = [&](const JobConfig& other, const std::string& text) {
    const auto written = CheckpointStore(folder.path(), 1)
                             .save(1, snapshot.tensors,
                                   {{std::string(kResultsHashKey), config.results_hash()},
                                    {std::string(kResultsKey), text}})
                             .value();
    const auto made = Replica::make(other, small_model(), {}, written.path.string(), {});
    return made.ok() ? "none" : to_string(made.error());
  };
  EXPECT_EQ(resume(config, config.results_text()), "none");
  auto other = config;
  other.device = "simulated";
  EXPECT_THAT(resume(other, config.results_text()),
              testing::HasSubstr("a job with job.device = \"cpu\" (here: \"simulated\"); resume"));
  other.ranks = other.seed = other.threads_per_rank = 77;
  other.data.batch = 770;
  EXPECT_THAT(resume(other, config.results_text()), testing::HasSubstr("and 1 other key"));
  for (const char* text : {"", "\n\n = \n", "nonsense", "job.ranks = "})
    EXPECT_THAT(resume(other, text), testing::HasSubstr("a job with "));
}

TEST(Replica, refuses_a_checkpoint_that_contradicts_the_job) {
  const TemporaryFolder folder;
  const auto config = job({.name = "adam"});
  const auto snapshot = replica({.name = "adam"})->snapshot().value();
  const auto resume = [&](std::uint64_t step, const std::vector<TensorView>& tensors) {
    const auto written =
        CheckpointStore(folder.path(), 1)
            .save(step, tensors, {{std::string(kResultsHashKey), config.results_hash()}})
            .value();
    const auto made =
        Replica::make(config, small_model(), {}, written.path.string(), {.steps_per_epoch = 10});
    return made.ok() ? "none" : to_string(made.error());
  };
  EXPECT_EQ(resume(10, snapshot.tensors), "none");
  EXPECT_THAT(resume(11, snapshot.tensors),
              testing::HasSubstr("has taken 11 steps, but the whole job has 10"));
  auto turned = snapshot.tensors;
  auto& matrix = *std::ranges::find_if(turned, [](const auto& x) { return x.shape.size() == 2; });
  std::swap(matrix.shape[0], matrix.shape[1]);
  EXPECT_THAT(resume(9, turned),
              testing::HasSubstr("has no tensor '" + matrix.name + "' of shape"));
}

TEST(Replica, that_does_not_fit_on_the_device_is_an_error) {
  const kernels::ComputeDevice device(
      kernels::simulated::make_backend({.memory = std::size_t{8} << 10}).value());
  const auto made =
      Replica::make(job({.name = "adam"}), small_model(), device, "", {.steps_per_epoch = 10});
  ASSERT_EQ(made.code(), Code::resource_exhausted);
  EXPECT_THAT(made.error().message, testing::HasSubstr("simulated has no "));
}

}  // namespace
}  // namespace troupe::train
