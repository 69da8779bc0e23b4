// In a process of its own, so that what is counted is the runtime's.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
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

/// The threads there are that were not in `known`, once those that are ending have had their time:
/// the kernel lists a thread for a moment after it has been joined, as joining wakes at the first
/// steps of its end.
std::set<std::string> threads_beyond(const std::set<std::string>& known) {
  std::set<std::string> left;
  const auto limit = std::chrono::steady_clock::now() + 5s;
  do {
    left.clear();
    const std::set<std::string> now = entries("/proc/self/task");
    std::set_difference(now.begin(), now.end(), known.begin(), known.end(),
                        std::inserter(left, left.end()));
    if (left.empty()) break;
    std::this_thread::sleep_for(1ms);
  } while (std::chrono::steady_clock::now() < limit);
  return left;
}

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
  EXPECT_EQ(threads_beyond(before.threads), std::set<std::string>{});
  const Traces after;
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.segments, before.segments);
}

}  // namespace
}  // namespace troupe
