#include <filesystem>

#include <gtest/gtest.h>

#include "actors/config/job_config.hpp"

namespace troupe::train {
namespace {

TEST(ExampleJobs, each_one_is_valid_and_those_whose_data_is_here_find_it) {
  std::size_t jobs = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TROUPE_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".toml") continue;
    ++jobs;
    const auto job = load_job(entry.path());
    ASSERT_TRUE(job.ok()) << job.error().message;
    const DataConfig& data = job->data;
    if (data.directory.filename() != "data") continue;
    for (const auto& file : {data.train, data.test, data.train_images, data.train_labels,
                             data.test_images, data.test_labels})
      EXPECT_TRUE(file.empty() || std::filesystem::exists(file)) << file;
  }
  EXPECT_EQ(jobs, 5u);
}

}  // namespace
}  // namespace troupe::train
