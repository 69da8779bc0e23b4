#include "actors/config/job_config.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/config/example_job.hpp"

namespace troupe::train {
namespace {

using testing::HasSubstr;

TEST(JobConfig, its_text_reads_back_to_the_same_text_whatever_the_values) {
  JobConfig job = smallest_job();
  job.name = "a-b_c.1";
  job.seed = 0x7fffffffffffffff;
  job.model = {.name = "mlp", .hidden = {300, 100}, .classes = 2};
  job.data.directory = "/with \"quotes\" \\ and\ttab/\x7f/\xc3\xa4";
  job.data.mean = {0.1};
  job.data.std = {1.0 / 3.0};
  job.optimizer.lr = 1e-7;
  job.optimizer.weight_decay = 5e-324;
  job.checkpoint.every_steps = 0;
  job.model.weights = "/weights \"of\" yesterday";
  job.model.fresh = {"fc.weight", "a \"b\" \\ c"};
  ASSERT_TRUE(job.validate().ok());
  const std::string text = job.to_toml();
  auto again = parse_job(text);
  ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text;
  // Relative data names are put behind the directory, once.
  again->data.train_images = job.data.train_images;
  again->data.train_labels = job.data.train_labels;
  again->data.test_images = job.data.test_images;
  again->data.test_labels = job.data.test_labels;
  EXPECT_EQ(again->to_toml(), text);
  EXPECT_EQ(again->model.fresh, job.model.fresh);
  EXPECT_EQ(again->data.std, std::vector<double>{1.0 / 3.0});
  EXPECT_EQ(again->optimizer.weight_decay, 5e-324);
}

TEST(JobConfig, the_same_job_written_in_another_order_has_the_same_text) {
  const auto a = parse_job(kSmallestJob + "[optimizer]\nlr=0.10\nmomentum=0.9\n");
  const auto b = parse_job("optimizer.momentum=9e-1\noptimizer.lr=0.1\n" + kSmallestJob);
  EXPECT_EQ(a->to_toml(), b->to_toml());
}

TEST(JobConfig, the_results_hash_changes_with_everything_that_changes_results) {
  const std::string hash = smallest_job().results_hash();
  EXPECT_EQ(hash.size(), 64u);
  const std::function<void(JobConfig&)> changes[] = {
      [](JobConfig& c) { c.ranks = 4; },
      [](JobConfig& c) { c.epochs = 2; },
      [](JobConfig& c) { c.seed = 2; },
      [](JobConfig& c) { c.threads_per_rank = 2; },
      [](JobConfig& c) { c.max_cpu_isa = "avx2"; },
      [](JobConfig& c) { c.device = "cuda"; },
      [](JobConfig& c) { c.precision = "bf16"; },
      [](JobConfig& c) { c.model.name = "mlp"; },
      [](JobConfig& c) { c.model.hidden = {1}; },
      [](JobConfig& c) { c.model.classes = 11; },
      [](JobConfig& c) { c.model.fresh = {"fc3.bias"}; },
      [](JobConfig& c) { c.model.synchronized_batch_norm = true; },
      [](JobConfig& c) { c.model.label_smoothing = 0.1; },
      [](JobConfig& c) { c.data.batch = 64; },
      [](JobConfig& c) { c.data.mean = {0.5}; },
      [](JobConfig& c) { c.data.std = {0.5}; },
      [](JobConfig& c) { c.data.format = "cifar10"; },
      [](JobConfig& c) { c.data.augment = "crop_flip"; },
      [](JobConfig& c) { c.data.bad_samples = "skip"; },
      [](JobConfig& c) { c.data.image_size = 32; },
      [](JobConfig& c) { c.data.tokens = 32; },
      [](JobConfig& c) { c.data.token_type = "i32"; },
      [](JobConfig& c) { c.optimizer.lr = 0.5; },
      [](JobConfig& c) { c.optimizer.momentum = 0.5; },
      [](JobConfig& c) { c.optimizer.weight_decay = 0.5; },
      [](JobConfig& c) { c.optimizer.name = "adamw"; },
      [](JobConfig& c) { c.optimizer.beta2 = 0.99; },
      [](JobConfig& c) { c.optimizer.decay_vectors = false; },
      [](JobConfig& c) { c.optimizer.clip_norm = 1; },
      [](JobConfig& c) { c.optimizer.non_finite = "skip"; },
      [](JobConfig& c) { c.optimizer.loss_scale = 2; },
      [](JobConfig& c) { c.optimizer.loss_scale_steps = 2; },
      [](JobConfig& c) { c.optimizer.schedule.kind = "step"; },
      [](JobConfig& c) { c.optimizer.schedule.warmup_steps = 5; },
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    JobConfig job = smallest_job();
    changes[i](job);
    EXPECT_NE(job.results_hash(), hash) << "change " << i;
  }
}

TEST(JobConfig, the_results_hash_does_not_change_with_what_changes_only_speed_and_places) {
  JobConfig job = smallest_job();
  job.name = "other";
  job.data.directory = "/elsewhere";
  job.data.train_images = "/elsewhere/train";
  job.model.weights = "/elsewhere/weights";
  job.checkpoint = {.directory = "/tmp", .every_steps = 1, .keep = 9, .final_layout = "gpt2"};
  job.operation = {.bucket_bytes = 8192, .log_every = 1, .prefetch = 0};
  EXPECT_EQ(job.results_hash(), smallest_job().results_hash());
}

TEST(JobConfig, one_that_a_program_made_is_checked_as_one_from_a_file) {
  EXPECT_TRUE(smallest_job().validate().ok());
  EXPECT_THAT(JobConfig{}.validate().error().message, HasSubstr("'job.ranks' is 0"));
  const std::pair<std::function<void(JobConfig&)>, const char*> wrong[] = {
      {[](JobConfig& c) { c.data.batch = 3; }, "'data.batch' is 3"},
      {[](JobConfig& c) { c.data.drop_last = false; }, "'data.drop_last' is false"},
      {[](JobConfig& c) { c.model.hidden = {3}; }, "'model.hidden' is [3]"},
      {[](JobConfig& c) { c.model.fresh = {"fc3.bias"}; }, "'model.fresh' is [\"fc3.bias\"]"},
      {[](JobConfig& c) { c.checkpoint.final_layout = "gpt2"; }, "a lenet5 has no such layout"},
      {[](JobConfig& c) { c.optimizer.nesterov = true; }, "set optimizer.momentum"},
      {[](JobConfig& c) { c.name = "../x"; }, "'job.name' is \"../x\""},
      {[](JobConfig& c) { c.name = ""; }, "'job.name' is \"\""},
      {[](JobConfig& c) { c.optimizer.schedule = {.kind = "cosine", .final_lr = 5}; },
       "at most optimizer.lr"},
      {[](JobConfig& c) { c.optimizer.schedule = {.kind = "linear", .final_lr = 5}; },
       "at most optimizer.lr"},
      {[](JobConfig& c) { c.optimizer.schedule = {.kind = "one_cycle", .warmup_steps = 5}; },
       "one_cycle warms up by itself"},
      {[](JobConfig& c) { c.optimizer = {.name = "adam", .momentum = 0.9}; },
       "'optimizer.momentum' is 0.9, but adam has no such choice; remove the key, which is of sgd "
       "and lars"},
      {[](JobConfig& c) { c.optimizer = {.name = "lars", .momentum = 0.9, .nesterov = true}; },
       "'optimizer.nesterov' is true, but lars has no such choice"},
      {[](JobConfig& c) { c.optimizer.beta1 = 0.8; }, "which is of adam, adamw and lamb"},
      {[](JobConfig& c) { c.optimizer.beta2 = 0.8; }, "'optimizer.beta2' is 0.8, but sgd"},
      {[](JobConfig& c) { c.optimizer.epsilon = 1e-6; }, "'optimizer.epsilon' is 1e-06, but sgd"},
      {[](JobConfig& c) { c.optimizer.epsilon = 0; }, "must be a number of at least 1e-30"},
      {[](JobConfig& c) { c.optimizer.trust_coefficient = 1; }, "which is of lars"},
      {[](JobConfig& c) { c.optimizer.clip_norm = -1; }, "'optimizer.clip_norm' is -1"},
  };
  for (const auto& [change, sentence] : wrong) {
    JobConfig job = smallest_job();
    change(job);
    const Status status = job.validate();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.error().message, HasSubstr(sentence));
  }
}

}  // namespace
}  // namespace troupe::train
