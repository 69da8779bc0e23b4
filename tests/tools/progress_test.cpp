#include "tools/progress.hpp"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace troupe::tool {
namespace {

class ProgressTest : public testing::Test {
protected:
  ~ProgressTest() override {
    std::fclose(file_);
    std::free(text_);
  }
  std::string shown() {
    std::fflush(file_);
    return {text_, size_};
  }
  train::JobStarted job() {
    train::JobStarted started;
    started.name = "digits";
    started.ranks = 8;
    started.nodes = 2;
    started.epochs = 2;
    started.steps_per_epoch = 10;
    started.global_batch = 100;
    return started;
  }

  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_ = open_memstream(&text_, &size_);
  ManualClock clock_;
};

TEST_F(ProgressTest, plain_lines_have_epoch_step_loss_rate_and_time_left) {
  Progress progress({.out = file_, .terminal = false, .log_every = 5}, clock_);
  progress.on_started(job());
  clock_.advance(std::chrono::seconds(1));
  for (std::uint64_t step = 0; step < 5; ++step) progress.on_step({step, 0.5, 0.9, 0.01});
  EXPECT_NE(shown().find("epoch 1/2  step 5/20  loss 0.5000  500 samples/s  ETA 3s\n"),
            std::string::npos)
      << shown();
}

TEST_F(ProgressTest, a_terminal_gets_one_line_that_is_drawn_again) {
  Progress progress({.out = file_, .terminal = true}, clock_);
  progress.on_started(job());
  for (std::uint64_t step = 0; step < 20; ++step) {
    clock_.advance(std::chrono::milliseconds(100));
    progress.on_step({step, 0.25, 1});
  }
  EXPECT_NE(shown().find("\r\x1b[K[########################] epoch 2/2  step 20/20"),
            std::string::npos);
}

TEST_F(ProgressTest, a_resumed_job_counts_only_what_it_did_itself) {
  Progress progress({.out = file_, .terminal = false, .log_every = 1}, clock_);
  auto resumed = job();
  resumed.first_step = 10;
  progress.on_started(resumed);
  clock_.advance(std::chrono::seconds(1));
  progress.on_step({10, 0.5, 0.9});
  EXPECT_NE(shown().find("100 samples/s"), std::string::npos) << shown();
}

TEST_F(ProgressTest, long_times_are_in_hours_and_minutes) {
  EXPECT_EQ(duration_text(12.4), "12s");
  EXPECT_EQ(duration_text(200), "3m20s");
  EXPECT_EQ(duration_text(3720), "1h02m");
}

}  // namespace
}  // namespace troupe::tool
