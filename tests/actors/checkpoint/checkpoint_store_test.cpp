#include "actors/checkpoint/checkpoint_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/checkpoint/fake_file_system.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Checkpoints : public testing::Test {
protected:
  /// Writes a state whose weights are the step's number.
  Result<WrittenFile> save(std::uint64_t step) {
    weight_ = static_cast<float>(step);
    return store_.save(step, tensors(), {{"job", "test"}});
  }
  std::vector<TensorView> tensors() const {
    return {{"w", "F32", {1}, std::as_bytes(std::span(&weight_, 1))}};
  }
  static float weight_of(const TensorFile& file) {
    float weight = 0;
    std::memcpy(&weight, file.find("w")->bytes.data(), sizeof(weight));
    return weight;
  }
  std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> all;
    const auto entries = store_.list().value();
    for (const auto& entry : entries) all.push_back(entry.step);
    return all;
  }
  static std::string name(std::uint64_t step) {
    return fmt::format("/d/step-{:08}.safetensors", step);
  }
  void alter(std::uint64_t step) {
    std::string content = files_->contents()[name(step)];
    content.back() ^= 1;
    files_->put(name(step), content);
  }

  std::shared_ptr<FakeFileSystem> files_ = std::make_shared<FakeFileSystem>();
  CheckpointStore store_{"/d", 3, files_};
  float weight_ = 0;
};

TEST_F(Checkpoints, the_newest_is_found_with_its_step_and_metadata) {
  ASSERT_TRUE(save(100).ok());
  ASSERT_TRUE(save(200).ok());
  const auto found = store_.latest();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->entry.step, 200u);
  EXPECT_EQ(found->entry.path, name(200));
  EXPECT_EQ(found->content.metadata.at("job"), "test");
  EXPECT_EQ(weight_of(found->content), 200.0f);
  EXPECT_THAT(found->damaged, IsEmpty());
}

TEST_F(Checkpoints, only_the_newest_are_kept) {
  for (const std::uint64_t step : {1, 2, 3, 4, 5}) ASSERT_TRUE(save(step).ok());
  EXPECT_THAT(steps(), ElementsAre(5, 4, 3));
}

TEST_F(Checkpoints, one_just_written_is_kept_though_later_ones_are_there) {
  for (const std::uint64_t step : {100, 200, 300}) ASSERT_TRUE(save(step).ok());
  ASSERT_TRUE(save(50).ok());
  EXPECT_THAT(steps(), ElementsAre(300, 200, 100, 50));
}

TEST_F(Checkpoints, steps_with_more_digits_are_newer) {
  ASSERT_TRUE(save(99999999).ok());
  ASSERT_TRUE(save(100000000).ok());
  EXPECT_EQ(store_.latest()->entry.step, 100000000u);
}

TEST_F(Checkpoints, other_files_are_left_alone) {
  for (const char* other :
       {"/d/step-5.safetensors", "/d/step-0000000x.safetensors", "/d/step-.safetensors",
        "/d/notes.txt", "/d/step-00000001.safetensors.bak"})
    files_->put(other, "x");
  for (const std::uint64_t step : {10, 20, 30, 40}) ASSERT_TRUE(save(step).ok());
  EXPECT_THAT(steps(), ElementsAre(40, 30, 20));
  ASSERT_TRUE(store_.clear().ok());
  EXPECT_EQ(files_->contents().size(), 5u);
}

TEST_F(Checkpoints, an_altered_one_is_refused_and_the_one_before_it_is_used) {
  for (const std::uint64_t step : {10, 20, 30}) ASSERT_TRUE(save(step).ok());
  alter(30);
  files_->put(name(20), files_->contents()[name(20)].substr(0, 100));
  const auto found = store_.latest();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->entry.step, 10u);
  EXPECT_EQ(weight_of(found->content), 10.0f);
  EXPECT_THAT(found->damaged, ElementsAre(AllOf(HasSubstr(name(30) + " is damaged: its checksum"),
                                                HasSubstr("the one of step 10 is used")),
                                          HasSubstr(name(20) + " is damaged")));
}

TEST_F(Checkpoints, one_under_another_ones_name_is_refused) {
  ASSERT_TRUE(save(10).ok());
  files_->put(name(20), files_->contents()[name(10)]);
  const auto found = store_.latest();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->entry.step, 10u);
  EXPECT_THAT(found->damaged, ElementsAre(HasSubstr("is of step 10")));
}

TEST_F(Checkpoints, without_any_there_is_an_error_that_names_the_folder) {
  EXPECT_EQ(store_.latest().code(), Code::not_found);
  EXPECT_THAT(store_.latest().error().message, HasSubstr("/d"));
  ASSERT_TRUE(save(10).ok());
  alter(10);
  EXPECT_EQ(store_.latest().code(), Code::corrupt_data);
  EXPECT_THAT(store_.latest().error().message, HasSubstr(name(10)));
}

TEST_F(Checkpoints, the_result_is_no_checkpoint) {
  weight_ = 3;
  const auto written = store_.save_final(tensors(), {});
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->path, "/d/final.safetensors");
  EXPECT_EQ(store_.latest().code(), Code::not_found);
  EXPECT_EQ(store_.load(written->path).code(), Code::corrupt_data);
}

TEST_F(Checkpoints, clearing_removes_all_of_them_for_good) {
  for (const std::uint64_t step : {10, 20}) ASSERT_TRUE(save(step).ok());
  ASSERT_TRUE(store_.save_final(tensors(), {}).ok());
  ASSERT_TRUE(store_.clear().ok());
  files_->lose_power();
  EXPECT_THAT(files_->contents(), IsEmpty());
  EXPECT_TRUE(store_.clear().ok());
  EXPECT_TRUE(CheckpointStore("/never-made", 1, files_).clear().ok());
}

TEST_F(Checkpoints, a_save_that_fails_at_any_call_leaves_the_ones_before_it) {
  ASSERT_TRUE(save(10).ok());
  const auto before = files_->calls();
  ASSERT_TRUE(save(20).ok());
  const auto calls = files_->calls() - before;
  for (std::uint64_t n = 0; n < calls; ++n) {
    files_ = std::make_shared<FakeFileSystem>();
    store_ = CheckpointStore("/d", 3, files_);
    ASSERT_TRUE(save(10).ok());
    files_->fail_at(n);
    const auto written = save(20);
    EXPECT_EQ(written.code(), Code::io_error) << n;
    EXPECT_THAT(written.error().message, HasSubstr("/d")) << n;
    const auto found = store_.latest();
    ASSERT_TRUE(found.ok()) << n;
    EXPECT_EQ(weight_of(found->content), static_cast<float>(found->entry.step));
    ASSERT_TRUE(save(30).ok()) << n;
    EXPECT_EQ(store_.latest()->entry.step, 30u);
    for (const auto& [file, content] : files_->contents())
      EXPECT_THAT(file, testing::EndsWith(".safetensors")) << n;
  }
}

TEST_F(Checkpoints, whenever_the_process_dies_or_power_is_lost_a_whole_one_is_found) {
  for (const bool lucky : {false, true}) {
    for (std::uint64_t n = 0;; ++n) {
      files_ = std::make_shared<FakeFileSystem>();
      store_ = CheckpointStore("/d", 1, files_);
      ASSERT_TRUE(save(10).ok());
      files_->die_at(n);
      const bool saved = save(20).ok();
      files_->lose_power(lucky);
      const auto found = store_.latest();
      ASSERT_TRUE(found.ok()) << n << found.error().message;
      EXPECT_THAT(found->damaged, IsEmpty()) << n;
      EXPECT_EQ(weight_of(found->content), static_cast<float>(found->entry.step));
      if (!saved) continue;
      EXPECT_EQ(found->entry.step, 20u);  // what was said to be saved is there
      break;
    }
  }
}

}  // namespace
}  // namespace troupe::train
