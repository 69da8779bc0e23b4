// Jobs whose gradients are not finite.
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/checkpoint/checkpoint_store.hpp"
#include "actors/data/sampler.hpp"
#include "actors/job/job_runner.hpp"
#include "tests/actors/job/cluster.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr std::uint64_t kSteps = 20;  // of the job, 10 an epoch
constexpr std::size_t kImageHeader = 16, kImageBytes = 64;

class NonFiniteJob : public testing::Test {
protected:
  /// Sets the first two pixels of all images, and of `poisoned` ones to white.
  static void set_pixels(const std::filesystem::path& images, std::size_t count,
                         const std::vector<std::uint32_t>& poisoned) {
    std::fstream file(images, std::ios::binary | std::ios::in | std::ios::out);
    const auto put = [&](std::size_t image, char value) {
      file.seekp(static_cast<std::streamoff>(kImageHeader + image * kImageBytes));
      file.put(value).put(value);
    };
    for (std::size_t i = 0; i < count; ++i) put(i, 0);
    for (const auto image : poisoned) put(image, '\xff');
  }

  /// The checkpoint of `config` after its first step, whose weights `edit` has changed.
  static void make_checkpoint(JobConfig config, auto edit) {
    config.checkpoint.every_steps = 1;
    config.checkpoint.keep = kSteps;
    {
      Cluster cluster(1);
      Recorder recorder;
      const auto ended = JobRunner(*cluster.head, config, {}, recorder).run();
      ASSERT_TRUE(ended.ok()) << ended.error().message;
    }
    CheckpointStore store(config.checkpoint.directory, config.checkpoint.keep);
    const auto entries = store.list();
    ASSERT_TRUE(entries.ok() && !entries->empty());
    ASSERT_EQ(entries->back().step, 1u);
    auto found = store.load(entries->back().path);
    ASSERT_TRUE(found.ok()) << found.error().message;
    for (const auto& tensor : found->content.tensors) {
      auto* const first = reinterpret_cast<float*>(const_cast<std::byte*>(tensor.bytes.data()));
      edit(tensor.name, std::span(first, tensor.bytes.size() / sizeof(float)));
    }
    ASSERT_TRUE(store.clear().ok());
    ASSERT_TRUE(store.save(1, found->content.tensors, found->content.metadata).ok());
  }

  struct Outcome {
    Result<JobEnded> ended = Error{Code::internal, "it did not run"};
    Recorder recorder;
  };

  /// Goes on from the folder's checkpoint, in a copy of it. With `lose` a node is lost at that
  /// step.
  void run(Outcome& outcome, JobConfig config, std::size_t nodes,
           std::optional<std::uint64_t> lose = {}, const char* name = "copy") {
    const auto copy = folder_.path() / name;
    std::filesystem::remove_all(copy);
    std::filesystem::copy(config.checkpoint.directory, copy);
    config.checkpoint.directory = copy;
    Cluster cluster(nodes);
    std::thread stopper;
    outcome.recorder.at_step = [&](std::uint64_t step) {
      if (lose == step) stopper = std::thread([&] { cluster.nodes[1]->stop(); });
    };
    JobRunner runner(*cluster.head, config, {.resume = true}, outcome.recorder);
    outcome.ended = runner.run();
    if (stopper.joinable()) stopper.join();
  }

  /// Two images of the training set, and no others, make a gradient that is NaN.
  JobConfig poisoned_job(const std::string& policy, const std::string& optimizer = "sgd") {
    auto config = synthetic_job(folder_.path());
    config.model.hidden = {};
    config.optimizer.name = optimizer;
    if (optimizer != "sgd") config.optimizer.momentum = 0;
    config.optimizer.non_finite = policy;
    set_pixels(config.data.directory / config.data.train_images, 640, poisoned_);
    set_pixels(config.data.directory / config.data.test_images, 100, {});
    make_checkpoint(config, [](const std::string& name, std::span<float> values) {
      // The sum of the first two pixels' products overflows, unless they are black.
      if (name != "fc1.weight") return;
      for (std::size_t i = 0; i < values.size(); i += kImageBytes)
        values[i] = values[i + 1] = 3e38f;
    });
    return config;
  }

  /// Step and rank of the poisoned images, from `first` on.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> poisoned_places(const JobConfig& config,
                                                                       std::uint64_t first) {
    auto sampler = Sampler::make({640, config.data.batch, config.ranks, config.seed}).value();
    std::vector<std::pair<std::uint64_t, std::uint32_t>> places;
    for (auto step = first; step < kSteps; ++step)
      for (std::uint32_t rank = 0; rank < config.ranks; ++rank)
        for (const auto sample : sampler->samples(step, rank))
          if (std::find(poisoned_.begin(), poisoned_.end(), sample) != poisoned_.end())
            places.emplace_back(step, rank);
    return places;
  }

  const std::vector<std::uint32_t> poisoned_{17, 300};
  TemporaryFolder folder_;
};

TEST_F(NonFiniteJob, a_rate_that_makes_it_diverge_ends_it_with_rank_parameter_step_and_remedy) {
  for (const std::size_t nodes : {1, 3}) {
    auto config = synthetic_job(folder_.path());
    config.optimizer.lr = 1e3;
    config.optimizer.weight_decay = 1e3;  // weights grow a million times at each step
    Cluster cluster(nodes);
    Recorder recorder;
    auto ended = JobRunner(*cluster.head, config, {}, recorder).run();
    ASSERT_EQ(ended.code(), Code::failed_precondition);
    const auto bad = recorder.ended.at(0).steps;
    EXPECT_LT(bad, kSteps);
    EXPECT_THAT(
        ended.error().message,
        AllOf(HasSubstr("step " + std::to_string(bad + 1) + " was not taken"), HasSubstr("rank"),
              HasSubstr("fc"), HasSubstr("optimizer.lr"), HasSubstr("warmup_steps"),
              HasSubstr("optimizer.non_finite"), HasSubstr("--resume")));
  }
}

TEST_F(NonFiniteJob, stopping_leaves_the_checkpoint_of_the_step_before) {
  const auto config = poisoned_job("stop");
  std::string first;
  for (const std::size_t nodes : {1, 3}) {
    Outcome x;
    run(x, config, nodes);
    ASSERT_EQ(x.ended.code(), Code::failed_precondition);
    const auto [step, rank] = poisoned_places(config, x.recorder.started.first_step).front();
    EXPECT_THAT(x.ended.error().message, HasSubstr("step " + std::to_string(step + 1) +
                                                   " was not taken: the gradient of "
                                                   "rank " +
                                                   std::to_string(rank) + " is NaN in fc1.bias"));
    EXPECT_EQ(x.recorder.ended.at(0).steps, step);
    auto found = CheckpointStore(folder_.path() / "copy", 9).latest();
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found->entry.step, step);
    std::string bytes(reinterpret_cast<const char*>(found->content.storage.data()),
                      found->content.storage.size());
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << nodes << " nodes";
  }
}

TEST_F(NonFiniteJob, one_that_stopped_goes_on_with_skipping_to_the_weights_of_one_that_skipped) {
  auto config = poisoned_job("stop");
  Outcome stopped, resumed, skipped;
  run(stopped, config, 2);
  ASSERT_EQ(stopped.ended.code(), Code::failed_precondition);
  config.optimizer.non_finite = "skip";
  run(skipped, config, 1, {}, "other copy");
  ASSERT_TRUE(skipped.ended.ok()) << skipped.ended.error().message;
  config.checkpoint.directory = folder_.path() / "copy";
  run(resumed, config, 2, {}, "third copy");
  ASSERT_TRUE(resumed.ended.ok()) << resumed.ended.error().message;
  EXPECT_EQ(resumed.recorder.started.first_step, stopped.recorder.ended.at(0).steps);
  EXPECT_EQ(resumed.ended->sha256, skipped.ended->sha256);
}

TEST_F(NonFiniteJob, skipping_ends_in_the_same_weights_on_any_number_of_nodes_and_with_losses) {
  const auto config = poisoned_job("skip");
  Outcome one;
  run(one, config, 1);
  ASSERT_TRUE(one.ended.ok()) << one.ended.error().message;
  EXPECT_EQ(one.ended->steps, kSteps);
  const auto places = poisoned_places(config, one.recorder.started.first_step);
  ASSERT_GE(places.size(), 2u);
  std::vector<std::string> expected;
  for (const auto& [step, rank] : places)
    expected.push_back("step " + std::to_string(step + 1) + " was skipped: the gradient of rank " +
                       std::to_string(rank) + " is NaN in fc1.bias");
  EXPECT_THAT(one.recorder.notices, testing::IsSupersetOf(expected));
  EXPECT_THAT(one.recorder.notices, Contains(HasSubstr("skipped over gradients")));
  for (const auto& step : one.recorder.steps)
    EXPECT_EQ(step.skipped, std::any_of(places.begin(), places.end(),
                                        [&](const auto& x) { return x.first == step.step; }));
  EXPECT_TRUE(std::isfinite(one.recorder.epochs.back().test_loss));

  const auto expect_the_same = [&](const Outcome& x, const char* what, std::ptrdiff_t least) {
    ASSERT_TRUE(x.ended.ok()) << x.ended.error().message;
    EXPECT_EQ(x.ended->sha256, one.ended->sha256) << what;
    EXPECT_EQ(x.recorder.steps.back().skips, one.recorder.steps.back().skips) << what;
    for (const auto& notice : expected) {
      // Once, even if the step was done again; a lost node may take its word with it.
      const auto told = std::count(x.recorder.notices.begin(), x.recorder.notices.end(), notice);
      EXPECT_GE(told, least) << what << ": " << notice;
      EXPECT_LE(told, 1) << what << ": " << notice;
    }
  };
  Outcome three;
  run(three, config, 3);
  expect_the_same(three, "three nodes", 1);
  for (const auto& [step, rank] : places) {
    // Lost while the step before it is told, and while it is told itself.
    for (const auto when : {step - 1, step}) {
      if (when < one.recorder.started.first_step || when >= kSteps) continue;
      Outcome loss;
      run(loss, config, 3, when);
      expect_the_same(loss, "a lost node", 0);
    }
  }
}

TEST_F(NonFiniteJob, a_skipped_step_is_no_update_of_the_optimizer_after_a_resume_either) {
  auto config = poisoned_job("skip", "adam");
  Outcome undisturbed, resumed;
  run(undisturbed, config, 1);
  ASSERT_TRUE(undisturbed.ended.ok()) << undisturbed.ended.error().message;
  const auto skips = undisturbed.recorder.steps.back().skips;
  const auto first = poisoned_places(config, undisturbed.recorder.started.first_step).front().first;
  ASSERT_GE(skips, 1u);
  ASSERT_LT(first + 2, kSteps);
  {
    Cluster cluster(2);
    Recorder recorder;
    JobRunner runner(*cluster.head, config, {.resume = true}, recorder);
    recorder.at_step = [&](std::uint64_t step) {
      if (step == first) runner.cancel();
    };
    ASSERT_EQ(runner.run().code(), Code::cancelled);
  }
  run(resumed, config, 2);
  ASSERT_TRUE(resumed.ended.ok()) << resumed.ended.error().message;
  EXPECT_GT(resumed.recorder.started.first_step, first);
  EXPECT_EQ(resumed.recorder.steps.back().skips, skips);
  EXPECT_EQ(resumed.ended->sha256, undisturbed.ended->sha256);
}

TEST_F(NonFiniteJob, a_sum_of_finite_gradients_that_overflows_is_stopped_or_skipped_alike) {
  for (const std::string policy : {"stop", "skip"}) {
    auto config = synthetic_job(folder_.path());
    config.model.hidden = {1};
    config.optimizer.non_finite = policy;
    // Every sample is taken for class 3 and passes a gradient of 3e37 on to the only hidden unit:
    // eight samples of a rank can bear that, 64 cannot.
    make_checkpoint(config, [](const std::string& name, std::span<float> values) {
      if (!name.starts_with("fc")) return;  // momentum
      std::fill(values.begin(), values.end(), name == "fc1.weight" ? 0.01f : 0.0f);
      if (name == "fc2.weight") values[3] = 3e37f;
    });
    std::string first;
    for (const std::size_t nodes : {1, 3}) {
      Outcome x;
      run(x, config, nodes);
      const auto step = x.recorder.started.first_step + 1;
      if (policy == "stop") {
        ASSERT_EQ(x.ended.code(), Code::failed_precondition);
        EXPECT_THAT(x.ended.error().message,
                    AllOf(HasSubstr("step " + std::to_string(step) + " was not taken"),
                          HasSubstr("summed over all ranks is infinite in fc1.")));
        continue;
      }
      ASSERT_TRUE(x.ended.ok()) << x.ended.error().message;
      EXPECT_THAT(x.recorder.notices, Contains(HasSubstr("summed over all ranks is infinite")));
      EXPECT_THAT(x.recorder.notices, Contains(HasSubstr("only the number is told")));
      EXPECT_THAT(x.recorder.notices,
                  Contains(HasSubstr(std::to_string(kSteps - step + 1) + " steps were skipped")));
      if (first.empty()) first = x.ended->sha256;
      EXPECT_EQ(x.ended->sha256, first);
    }
  }
}

}  // namespace
}  // namespace troupe::train
