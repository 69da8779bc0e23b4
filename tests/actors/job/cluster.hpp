#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "actors/job/register.hpp"
#include "actors/train/events.hpp"
#include "runtime/cluster/runtime.hpp"

namespace troupe::train {

inline RuntimeOptions options(
    std::uint32_t slots, std::shared_ptr<NodeContext> context = std::make_shared<NodeContext>()) {
  RuntimeOptions result;
  result.slots = slots;
  result.configure = [context = std::move(context)](caf::actor_system_config& config) {
    register_actors(config, context);
  };
  return result;
}

/// A head and some nodes in this process.
struct Cluster {
  explicit Cluster(std::size_t count) {
    head = Runtime::start_cluster(options(0)).value();
    for (std::size_t i = 0; i < count; ++i) add();
    EXPECT_TRUE(head->wait_for_nodes(count, std::chrono::seconds(20)).ok());
  }
  void add(RuntimeOptions node = options(1)) {
    nodes.push_back(Runtime::join(head->address(), std::move(node)).value());
  }

  std::unique_ptr<Runtime> head;
  std::vector<std::unique_ptr<Runtime>> nodes;
};

/// Keeps what a job said; may act at a step.
struct Recorder final : JobObserver {
  void on_started(const JobStarted& x) override { started = x; }
  void on_step(const StepFinished& x) override {
    steps.push_back(x);
    if (at_step) at_step(x.step);
  }
  void on_epoch(const EpochFinished& x) override { epochs.push_back(x); }
  void on_checkpoint(const CheckpointWritten& x) override { checkpoints.push_back(x); }
  void on_notice(const Notice& x) override { notices.push_back(x.text); }
  void on_ended(const JobEnded& x) override { ended.push_back(x); }

  std::function<void(std::uint64_t)> at_step;
  JobStarted started;
  std::vector<StepFinished> steps;
  std::vector<EpochFinished> epochs;
  std::vector<CheckpointWritten> checkpoints;
  std::vector<std::string> notices;
  std::vector<JobEnded> ended;
};

}  // namespace troupe::train
