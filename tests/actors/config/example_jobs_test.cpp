#include <filesystem>

#include <gtest/gtest.h>

#include "actors/config/job_config.hpp"

namespace troupe::train {
namespace {

TEST(ExampleJobs, each_one_is_valid_and_those_on_the_subset_find_their_data) {
  std::size_t jobs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(TROUPE_SOURCE_DIR "/examples/mnist")) {
    if (entry.path().extension() != ".toml") continue;
    ++jobs;
    const auto job = load_job(entry.path());
    ASSERT_TRUE(job.ok()) << job.error().message;
    if (job->data.directory.filename() != "data") continue;
    for (const auto& file : {job->data.train_images, job->data.train_labels, job->data.test_images,
                             job->data.test_labels})
      EXPECT_TRUE(std::filesystem::exists(file)) << file;
  }
  EXPECT_EQ(jobs, 4u);
}

}  // namespace
}  // namespace troupe::train
