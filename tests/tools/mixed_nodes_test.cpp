// Nodes that would not compute the same.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/job/synthetic_job.hpp"
#include "tests/tools/process.hpp"

namespace troupe::tool {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using train::TemporaryFolder;

class MixedNodes : public testing::Test {
protected:
  Head head_;
  TemporaryFolder folder_;
};

TEST_F(MixedNodes, on_other_data_are_both_named) {
  auto config = train::synthetic_job(folder_.path());
  config.data.directory = "/proc/self/cwd";  // each node's own
  config.checkpoint.directory = folder_.path() / "checkpoints";
  const auto job = folder_.path() / "job.toml";
  std::ofstream(job) << config.to_toml();
  std::vector<std::unique_ptr<Process>> nodes;
  for (const std::string name : {"one", "two"}) {
    const auto own = folder_.path() / name;
    std::filesystem::create_directory(own);
    for (const char* file : {"train-images", "train-labels", "test-images", "test-labels"})
      std::filesystem::copy_file(folder_.path() / file, own / file);
    if (name == "two") {
      std::fstream images(own / "train-images", std::ios::binary | std::ios::in | std::ios::out);
      images.seekp(1000).put('\x55').put('\x56');
    }
    nodes.push_back(
        std::make_unique<Process>(std::vector<std::string>{"-C", own, TROUPE_COMMAND, "node",
                                                           "--head", head_.address, "--name", name},
                                  std::vector<std::string>{}, "/usr/bin/env"));
    ASSERT_TRUE(nodes.back()->read_until("joined")) << nodes.back()->output();
  }
  Process submit({"submit", job, "--head", head_.address});
  EXPECT_EQ(submit.wait(), 2) << submit.output();
  EXPECT_THAT(submit.output(), AllOf(HasSubstr("node 'one'"), HasSubstr("node 'two'"),
                                     HasSubstr("read different data")));
}

}  // namespace
}  // namespace troupe::tool
