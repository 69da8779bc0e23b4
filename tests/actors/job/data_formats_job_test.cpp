// Jobs on each format that a model can be trained on: the same weights on any number of nodes.
#include <cmath>
#include <fstream>
#include <random>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/job/job_runner.hpp"
#include "tests/actors/data/picture_files.hpp"
#include "tests/actors/job/cluster.hpp"
#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class DataFormatsJob : public testing::Test {
protected:
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
  }

  /// A perceptron for colour images of three classes, of which each is bright in one channel.
  JobConfig job(const std::string& format) const {
    JobConfig config;
    config.name = "formats";
    config.ranks = 4;
    config.epochs = 2;
    config.model.name = "mlp";
    config.model.hidden = {16};
    config.model.classes = 3;
    config.data.format = format;
    config.data.directory = folder_.path();
    config.data.batch = 8;
    config.data.augment = "crop_flip";
    config.data.mean = {0.4, 0.5, 0.6};
    config.data.std = {0.25, 0.5, 1.0};
    config.optimizer.lr = 0.01;
    config.checkpoint.directory = folder_.path() / "checkpoints";
    config.checkpoint.every_steps = 0;
    return config;
  }

  JobConfig cifar_job() const {
    for (const auto& [name, count] :
         {std::pair{"data_batch_1.bin", 30}, {"data_batch_2.bin", 20}, {"test_batch.bin", 10}}) {
      std::mt19937 random(static_cast<unsigned>(count));
      std::string records;
      for (int i = 0; i < count; ++i) {
        const int label = i % 3;
        records += static_cast<char>(label);
        for (int at = 0; at < 3072; ++at)
          records += static_cast<char>(random() % 128 + (at / 1024 == label ? 127 : 0));
      }
      write(name, records);
    }
    return job("cifar10");
  }

  JobConfig image_job() const {
    for (int i = 0; i < 36; ++i) {
      const auto width = static_cast<std::uint32_t>(20 + i % 7),
                 height = static_cast<std::uint32_t>(18 + i % 5);
      const auto pixels = picture(width, height, static_cast<std::uint32_t>(i));
      const auto file = i % 2 == 0 ? jpeg_of(pixels, width, height) : png_of(pixels, width, height);
      write("pictures/" + std::string(i % 6 == 5 ? "test/" : "train/") +
                std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i) +
                (i % 2 == 0 ? ".jpg" : ".png"),
            file);
    }
    // The remainder of 6 is 5 for one class only.
    for (const char* name : {"a/x.png", "b/y.png"})
      write("pictures/test/" + std::string(name), png_of(picture(16, 16, 1), 16, 16));
    auto config = job("images");
    config.data.train = "pictures/train";
    config.data.test = "pictures/test";
    config.data.image_size = 16;
    return config;
  }

  struct Outcome {
    Result<JobEnded> ended = Error{Code::internal, "it did not run"};
    Recorder recorder;
  };
  void run(Outcome& outcome, const JobConfig& config, std::size_t nodes) const {
    std::filesystem::remove_all(config.checkpoint.directory);
    Cluster cluster(nodes);
    JobRunner runner(*cluster.head, config, {}, outcome.recorder);
    outcome.ended = runner.run();
  }

  void expect_one_result(const JobConfig& config, std::uint64_t steps) const {
    Outcome one, two;
    run(one, config, 1);
    ASSERT_TRUE(one.ended.ok()) << one.ended.error().message;
    EXPECT_EQ(one.ended->steps, steps);
    run(two, config, 2);
    ASSERT_TRUE(two.ended.ok()) << two.ended.error().message;
    EXPECT_EQ(one.ended->sha256, two.ended->sha256);
  }

  TemporaryFolder folder_;
};

TEST_F(DataFormatsJob, cifar10_ends_in_the_same_weights_on_one_and_two_nodes) {
  expect_one_result(cifar_job(), 12);
}

TEST_F(DataFormatsJob, a_folder_of_images_ends_in_the_same_weights_on_one_and_two_nodes) {
  expect_one_result(image_job(), 6);
}

TEST_F(DataFormatsJob, augmenting_changes_the_weights) {
  auto config = cifar_job();
  Outcome with, without;
  run(with, config, 1);
  config.data.augment = "none";
  run(without, config, 1);
  ASSERT_TRUE(with.ended.ok() && without.ended.ok());
  EXPECT_NE(with.ended->sha256, without.ended->sha256);
}

TEST_F(DataFormatsJob, a_damaged_image_stops_the_job_with_its_name) {
  const auto config = image_job();
  write("pictures/train/a/0.jpg", "no picture");
  Outcome x;
  run(x, config, 2);
  EXPECT_EQ(x.ended.code(), Code::corrupt_data);
  EXPECT_THAT(x.ended.error().message,
              AllOf(HasSubstr("pictures/train/a/0.jpg"), HasSubstr("bad_samples")));
}

TEST_F(DataFormatsJob, one_that_stopped_at_a_damaged_image_goes_on_without_it) {
  auto config = image_job();
  write("pictures/train/a/0.jpg", "no picture");
  config.epochs = 3;
  Outcome stopped, skipped, resumed;
  run(stopped, config, 2);
  ASSERT_EQ(stopped.ended.code(), Code::corrupt_data);
  config.data.bad_samples = "skip";
  const auto stopped_in = std::exchange(config.checkpoint.directory, folder_.path() / "other");
  run(skipped, config, 1);
  ASSERT_TRUE(skipped.ended.ok()) << skipped.ended.error().message;
  config.checkpoint.directory = stopped_in;
  {
    Cluster cluster(2);
    resumed.ended =
        JobRunner(*cluster.head, config, {.job = 1, .resume = true}, resumed.recorder).run();
  }
  ASSERT_TRUE(resumed.ended.ok()) << resumed.ended.error().message;
  EXPECT_EQ(resumed.ended->sha256, skipped.ended->sha256);
  EXPECT_THAT(resumed.recorder.notices, Not(Contains(HasSubstr("data has changed"))));
}

TEST_F(DataFormatsJob, one_that_goes_on_with_other_data_says_so) {
  auto config = image_job();
  write("pictures/train/a/0.jpg", "no picture");
  Outcome stopped, resumed;
  run(stopped, config, 2);
  ASSERT_EQ(stopped.ended.code(), Code::corrupt_data);
  write("pictures/train/a/0.jpg", jpeg_of(picture(20, 20, 1), 20, 20));
  {
    Cluster cluster(2);
    resumed.ended =
        JobRunner(*cluster.head, config, {.job = 1, .resume = true}, resumed.recorder).run();
  }
  ASSERT_TRUE(resumed.ended.ok()) << resumed.ended.error().message;
  EXPECT_THAT(resumed.recorder.notices, Contains(HasSubstr("data has changed")));
}

TEST_F(DataFormatsJob, damaged_images_may_be_skipped_on_any_number_of_nodes_and_are_told) {
  auto config = image_job();
  write("pictures/train/a/0.jpg", "no picture");
  write("pictures/train/c/2.jpg", "");
  config.data.bad_samples = "skip";
  config.epochs = 3;
  expect_one_result(config, 9);
  Outcome x;
  run(x, config, 1);
  EXPECT_THAT(x.recorder.notices,
              Contains(HasSubstr("2 samples of the data could not be decoded")));
}

JobConfig text_job(JobConfig config) {
  config.data.augment = "none";
  config.data.mean = {0};
  config.data.std = {1};
  config.data.train = config.data.test = "a.txt";
  config.data.tokens = 8;
  config.model.classes = 256;
  return config;
}

class TokenModelJob : public DataFormatsJob {
protected:
  JobConfig job_of(const std::string& model) {
    std::string text;
    for (int i = 0; text.size() < 2000; ++i) text += std::to_string(i) + " and ";
    write("a.txt", text);
    auto config = text_job(job("text"));
    config.model.name = model;
    config.model.hidden = {};
    config.model.width = 16;
    config.optimizer.momentum = 0;
    config.optimizer.lr = 0.01;
    return config;
  }

  /// On one node and on two; `one` is what came of the former.
  void expect_one_result(const JobConfig& config, Outcome& one) {
    Outcome two;
    run(one, config, 1);
    run(two, config, 2);
    ASSERT_TRUE(one.ended.ok()) << one.ended.error().message;
    ASSERT_TRUE(two.ended.ok()) << two.ended.error().message;
    EXPECT_EQ(one.ended->sha256, two.ended->sha256);
    ASSERT_FALSE(one.recorder.steps.empty());
    EXPECT_LT(one.recorder.steps.back().loss, one.recorder.steps.front().loss);
  }
};

TEST_F(TokenModelJob, of_a_decoder_on_text_is_trained_to_one_result) {
  auto config = job_of("gpt");
  config.model.layers = 2;
  config.model.heads = 2;
  config.model.dropout = 0.1;
  config.optimizer.name = "adamw";
  Outcome one;
  ASSERT_NO_FATAL_FAILURE(expect_one_result(config, one));
  EXPECT_NEAR(one.recorder.steps.front().loss, std::log(256.0), 0.5);
}

TEST_F(TokenModelJob, of_a_recurrent_language_model_is_trained_to_one_result) {
  auto config = job_of("lstm_lm");
  config.optimizer.name = "adam";
  Outcome one;
  expect_one_result(config, one);
}

TEST_F(DataFormatsJob, a_model_of_images_is_not_trained_on_text) {
  write("a.txt", std::string(1000, 'x'));
  Outcome x;
  run(x, text_job(job("text")), 1);
  EXPECT_EQ(x.ended.code(), Code::invalid_argument);
  EXPECT_THAT(x.ended.error().message, HasSubstr("data.format \"text\""));
}

}  // namespace
}  // namespace troupe::train
