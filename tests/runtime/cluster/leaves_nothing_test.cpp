// In a process of its own, so that what is counted is the runtime's.
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/runtime/cluster/cluster_fixture.hpp"

namespace troupe {
namespace {

std::set<std::string> entries(const char* directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    const bool this_listing = !gone && target.string().find("/fd") != std::string::npos;
    if (!this_listing) names.insert(entry.path().filename().string());
  }
  return names;
}

struct Traces {
  std::set<std::string> threads = entries("/proc/self/task");
  std::set<std::string> descriptors = entries("/proc/self/fd");
  std::set<std::string> segments = entries("/dev/shm");
};

TEST(RuntimeTraces, leaves_no_thread_descriptor_or_shared_segment_behind) {
  std::thread([] {}).join();  // a sanitizer has a thread of its own from the first one on
  const Traces before;
  for (int round = 0; round < 2; ++round) {
    auto head = start_head();
    auto node = join(head->address());
    auto other = join(head->address());
    auto there = head->spawn_on(node->id(), "echo", caf::make_message(std::string("x")), 10s);
    ASSERT_TRUE(there.ok()) << there.error().message;
    EXPECT_EQ(*ask(*head, *there, "y"), "xy");
    const Traces during;
    EXPECT_GT(during.threads.size(), before.threads.size());
    other->stop();
    head->stop();
    node->stop();
    there = Error{};  // no handle may outlive its system
  }
  const Traces after;
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.segments, before.segments);
}

}  // namespace
}  // namespace troupe
