// Nodes that would not compute the same: with other instruction sets, on other data.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/actors/job/synthetic_job.hpp"
#include "tests/tools/process.hpp"

namespace troupe::tool {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using train::TemporaryFolder;

class MixedNodes : public testing::Test {
protected:
  static void need_avx2() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return;
#endif
    GTEST_SKIP() << "this CPU has no AVX2, so every node computes alike";
  }

  /// A job whose layers are computed by the library: our own loops have one thread.
  std::string job_file(const std::string& max_cpu_isa, std::uint64_t epochs = 2) {
    auto config = train::synthetic_job(folder_.path());
    config.threads_per_rank = 2;
    config.max_cpu_isa = max_cpu_isa;
    config.epochs = epochs;
    const auto path = folder_.path() / "job.toml";
    std::ofstream(path) << config.to_toml();
    return path;
  }

  /// The folder that each node started below has as its own, by that name.
  static constexpr const char* kOwnFolder = "/proc/self/cwd";
  std::filesystem::path own_folder(const std::string& name) const {
    std::filesystem::create_directory(folder_.path() / name);
    return folder_.path() / name;
  }
  std::unique_ptr<Process> start_in_own_folder(const std::string& name) const {
    auto node = std::make_unique<Process>(
        std::vector<std::string>{"-C", own_folder(name), TROUPE_COMMAND, "node", "--head",
                                 head_.address, "--name", name},
        std::vector<std::string>{}, "/usr/bin/env");
    EXPECT_TRUE(node->read_until("joined")) << node->output();
    return node;
  }

  Head head_;
  TemporaryFolder folder_;
};

struct Node {
  Node(const Head& head, const std::string& name, std::vector<std::string> environment = {})
      : process({"node", "--head", head.address, "--name", name}, std::move(environment)) {
    EXPECT_TRUE(process.read_until("joined")) << process.output();
  }
  Process process;
};

const std::vector<std::string> kOldCpu = {"ONEDNN_MAX_CPU_ISA=SSE41"};
const auto kNamesBoth = AllOf(HasSubstr("node 'new'"), HasSubstr("node 'old'"), HasSubstr("sse41"),
                              HasSubstr("job.max_cpu_isa"));

TEST_F(MixedNodes, of_two_instruction_sets_are_named_with_both_sets_and_the_remedy) {
  need_avx2();
  if (IsSkipped()) return;
  Node with_new(head_, "new"), with_old(head_, "old", kOldCpu);
  Process submit({"submit", job_file("native"), "--head", head_.address});
  EXPECT_EQ(submit.wait(), 2) << submit.output();
  EXPECT_THAT(submit.output(), kNamesBoth);
}

TEST_F(MixedNodes, one_that_joins_later_is_left_out) {
  need_avx2();
  if (IsSkipped()) return;
  Node with_new(head_, "new");
  Process submit({"submit", job_file("native", 100'000), "--head", head_.address});
  ASSERT_TRUE(submit.read_until("epoch 2/")) << submit.output();
  Node with_old(head_, "old", kOldCpu);
  ASSERT_TRUE(submit.read_until("is left out")) << submit.output();
  EXPECT_THAT(submit.output(), kNamesBoth);
  submit.signal(SIGINT);
  EXPECT_EQ(submit.wait(), 130) << submit.output();
}

TEST_F(MixedNodes, that_run_different_programs_are_named) {
  // Bytes after the end of an ELF file change nothing that runs.
  const auto other = folder_.path() / "troupe";
  std::filesystem::copy_file(TROUPE_COMMAND, other);
  std::ofstream(other, std::ios::app | std::ios::binary) << "another build";
  Node one(head_, "one");
  Process two({"node", "--head", head_.address, "--name", "two"}, {}, other);
  ASSERT_TRUE(two.read_until("joined")) << two.output();
  Process submit({"submit", job_file("native"), "--head", head_.address});
  EXPECT_EQ(submit.wait(), 2) << submit.output();
  EXPECT_THAT(submit.output(), AllOf(HasSubstr("node 'one'"), HasSubstr("node 'two'"),
                                     HasSubstr("different programs")));
}

TEST_F(MixedNodes, with_a_limit_that_all_have_end_in_the_weights_of_one_node) {
  need_avx2();
  if (IsSkipped()) return;
  const auto job = job_file("sse41");
  std::string hashes[3];
  for (const int nodes : {1, 2}) {
    Process train({"train", job, "--nodes", std::to_string(nodes)});
    ASSERT_EQ(train.wait(), 0) << train.output();
    hashes[nodes] = hash_in(train.output());
  }
  Node with_new(head_, "new"), with_old(head_, "old", kOldCpu);
  Process submit({"submit", job, "--head", head_.address});
  ASSERT_EQ(submit.wait(), 0) << submit.output();
  hashes[0] = hash_in(submit.output());
  EXPECT_EQ(hashes[1].size(), 64u);
  EXPECT_EQ(hashes[2], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[1]);

  // The processes are limited for good.
  Process other({"submit", job_file("avx2"), "--head", head_.address});
  EXPECT_EQ(other.wait(), 1) << other.output();
  EXPECT_THAT(other.output(), AllOf(HasSubstr("node '"), HasSubstr("sse41"), HasSubstr("avx2"),
                                    HasSubstr("start the process anew")));
}

TEST_F(MixedNodes, of_two_instruction_sets_share_a_job_that_needs_no_library) {
  Node with_new(head_, "new"), with_old(head_, "old", kOldCpu);
  const auto job = job_file("native");
  Process submit({"submit", job, "--head", head_.address, "--set", "job.threads_per_rank=1"});
  EXPECT_EQ(submit.wait(), 0) << submit.output();
}

TEST_F(MixedNodes, on_other_data_are_both_named) {
  auto config = train::synthetic_job(folder_.path());
  config.data.directory = kOwnFolder;
  const auto job = folder_.path() / "job.toml";
  std::ofstream(job) << config.to_toml();
  for (const std::string name : {"one", "two"}) {
    const auto own = own_folder(name);
    for (const char* file : {"train-images", "train-labels", "test-images", "test-labels"})
      std::filesystem::copy_file(folder_.path() / file, own / file);
    if (name == "two") {
      std::fstream images(own / "train-images", std::ios::binary | std::ios::in | std::ios::out);
      images.seekp(1000).put('\x55').put('\x56');
    }
  }
  const auto one = start_in_own_folder("one"), two = start_in_own_folder("two");
  Process submit({"submit", job, "--head", head_.address});
  EXPECT_EQ(submit.wait(), 2) << submit.output();
  EXPECT_THAT(submit.output(), AllOf(HasSubstr("node 'one'"), HasSubstr("node 'two'"),
                                     HasSubstr("read different data")));
}

TEST_F(MixedNodes, that_start_from_other_weights_are_both_named) {
  auto config = train::synthetic_job(folder_.path());
  const auto job = folder_.path() / "job.toml";
  for (const auto* name : {"one", "two"}) {
    config.seed = *name;
    std::ofstream(job) << config.to_toml();
    Process train({"train", job, "--nodes", "1", "--set",
                   "checkpoint.directory=" + own_folder(name).string()});
    ASSERT_EQ(train.wait(), 0) << train.output();
  }
  config.model.weights = std::filesystem::path(kOwnFolder) / "final.safetensors";
  std::ofstream(job) << config.to_toml();
  const auto one = start_in_own_folder("one"), two = start_in_own_folder("two");
  Process submit({"submit", job, "--head", head_.address});
  EXPECT_EQ(submit.wait(), 2) << submit.output();
  EXPECT_THAT(submit.output(),
              AllOf(HasSubstr("node 'one'"), HasSubstr("node 'two'"),
                    HasSubstr("start from different weights"), HasSubstr("model.weights")));
}

}  // namespace
}  // namespace troupe::tool
