#include "actors/train/node_context.hpp"

#include <filesystem>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <gtest/gtest.h>

#include "tests/actors/job/synthetic_job.hpp"

namespace troupe::train {
namespace {

class NodeContextOf : public testing::Test {
protected:
  NodeContextOf() {
    setup_.job = 7;
    setup_.config = synthetic_job(folder_.path()).to_toml();
    context_.enroll(setup_, Role::loader, loader_);
  }
  ~NodeContextOf() override {
    if (loader_) caf::anon_send_exit(loader_, caf::exit_reason::user_shutdown);
  }

  /// Has the set-up of a job fail, or not any more.
  void hide_data(bool hidden) {
    const auto shown = folder_.path() / "train-images", away = folder_.path() / "away";
    std::filesystem::rename(hidden ? shown : away, hidden ? away : shown);
  }

  TemporaryFolder folder_;
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  caf::actor loader_ = system_.spawn([] { return caf::behavior{[](int) {}}; });
  NodeContext context_;
  train::Setup setup_;
};

TEST_F(NodeContextOf, a_job_that_cannot_be_made_tells_all_actors_of_a_generation_at_once) {
  hide_data(true);
  const auto first = context_.job(setup_);
  ASSERT_EQ(first.code(), Code::not_found);
  hide_data(false);
  const auto second = context_.job(setup_);
  ASSERT_FALSE(second.ok()) << "it was made a second time";
  EXPECT_EQ(second.error().message, first.error().message);
}

TEST_F(NodeContextOf, a_job_that_could_not_be_made_is_tried_again_for_the_next_generation) {
  hide_data(true);
  ASSERT_FALSE(context_.job(setup_).ok());
  hide_data(false);
  ++setup_.generation;
  EXPECT_TRUE(context_.job(setup_).ok());
}

TEST_F(NodeContextOf, a_job_whose_actors_are_gone_is_forgotten) {
  hide_data(true);
  ASSERT_FALSE(context_.job(setup_).ok());
  hide_data(false);
  {
    caf::scoped_actor self(system_);
    self->send_exit(loader_, caf::exit_reason::user_shutdown);
    self->wait_for(loader_);
  }
  loader_ = nullptr;
  EXPECT_TRUE(context_.job(setup_).ok());
}

}  // namespace
}  // namespace troupe::train
