#include "actors/data/dataset.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/data/idx_files.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Dataset : public DataFiles {
protected:
  /// Three images of 1 by 2 pixels, "ab", "cd" and "ef", with labels 0, 2 and 1.
  Result<ImageDataset> load(const std::string& images, const std::string& labels) const {
    return ImageDataset::load(write("images", images), write("labels", labels), 3);
  }
  const std::string images_ = idx_header({3, 1, 2}) + "abcdef";
  const std::string labels_ = idx_header({3}) + std::string("\0\2\1", 3);
};

TEST_F(Dataset, gives_images_and_labels_by_index) {
  const auto set = load(images_, gzipped(labels_));
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->count(), 3u);
  EXPECT_EQ(set->height(), 1u);
  EXPECT_EQ(set->width(), 2u);
  EXPECT_EQ(std::memcmp(set->image(1).data(), "cd", 2), 0);
  EXPECT_EQ(set->label(1), 2);
}

TEST_F(Dataset, counts_that_differ_are_named_with_both_files) {
  const auto set = load(images_, idx_header({2}) + std::string("\0\1", 2));
  EXPECT_EQ(set.code(), Code::corrupt_data);
  EXPECT_THAT(set.error().message,
              AllOf(HasSubstr((folder_ / "images").native() + " has 3 images"),
                    HasSubstr((folder_ / "labels").native() + " has 2 labels")));
}

TEST_F(Dataset, a_label_that_is_no_class_is_named_with_its_index) {
  const auto set = load(images_, idx_header({3}) + std::string("\0\2\3", 3));
  EXPECT_EQ(set.code(), Code::corrupt_data);
  EXPECT_THAT(set.error().message, HasSubstr("labels: label 2 is 3, but the classes are 0 to 2"));
}

TEST_F(Dataset, files_that_were_swapped_are_told) {
  EXPECT_THAT(load(labels_, labels_).error().message,
              HasSubstr("images has the shape [3], but images are [count, height, width]"));
  EXPECT_THAT(load(images_, images_).error().message,
              HasSubstr("labels has the shape [3, 1, 2], but labels are [count]"));
}

TEST_F(Dataset, a_set_of_nothing_is_refused) {
  EXPECT_THAT(load(idx_header({0, 1, 2}), idx_header({0})).error().message, HasSubstr("no images"));
  EXPECT_THAT(load(idx_header({3, 0, 2}), labels_).error().message, HasSubstr("no images"));
}

TEST_F(Dataset, the_hash_is_of_the_content_and_not_of_how_it_is_packed) {
  const std::string hash = load(images_, labels_)->content_hash();
  EXPECT_EQ(hash.size(), 32u);
  EXPECT_EQ(load(gzipped(images_), gzipped(labels_))->content_hash(), hash);
  EXPECT_NE(load(idx_header({3, 2, 1}) + "abcdef", labels_)->content_hash(), hash);
  EXPECT_NE(load(idx_header({3, 1, 2}) + "abcdeg", labels_)->content_hash(), hash);
  EXPECT_NE(load(images_, idx_header({3}) + std::string("\0\2\2", 3))->content_hash(), hash);
}

TEST_F(Dataset, samples_are_gathered_as_pixels_and_wide_labels) {
  const auto set = *load(images_, labels_);
  Buffer images = Buffer::allocate(6).value();
  Buffer labels = Buffer::allocate(12).value();
  const std::uint32_t indices[] = {2, 0, 2};
  ASSERT_TRUE(set.gather(indices, images, labels).ok());
  EXPECT_EQ(std::memcmp(images.data(), "efabef", 6), 0);
  const std::int32_t wide[] = {1, 0, 1};
  EXPECT_EQ(std::memcmp(labels.data(), wide, sizeof(wide)), 0);

  ASSERT_TRUE(set.gather_run(1, 2, images, labels).ok());
  EXPECT_EQ(std::memcmp(images.data(), "cdef", 4), 0);
}

TEST_F(Dataset, gathering_checks_indices_and_room) {
  const auto set = *load(images_, labels_);
  Buffer images = Buffer::allocate(5).value();
  Buffer labels = Buffer::allocate(12).value();
  const std::uint32_t outside[] = {0, 3};
  EXPECT_THAT(set.gather(outside, images, labels).error().message, HasSubstr("no sample 3"));
  const std::uint32_t three[] = {0, 1, 2};
  EXPECT_THAT(set.gather(three, images, labels).error().message, HasSubstr("room for 2 images"));
  EXPECT_EQ(set.gather_run(2, 2, images, labels).code(), Code::invalid_argument);
  EXPECT_EQ(set.gather_run(UINT64_MAX, 1, images, labels).code(), Code::invalid_argument);
  EXPECT_TRUE(set.gather_run(3, 0, images, labels).ok());
}

}  // namespace
}  // namespace troupe::train
