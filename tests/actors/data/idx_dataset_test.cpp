#include "actors/data/idx_dataset.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/data/idx_files.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class IdxSet : public DataFiles {
protected:
  /// Three images of 1 by 2 pixels, "ab", "cd" and "ef", with labels 0, 2 and 1.
  Result<std::unique_ptr<IdxDataset>> load(const std::string& images,
                                           const std::string& labels) const {
    return IdxDataset::load(write("images", images), write("labels", labels), 3);
  }
  const std::string images_ = idx_header({3, 1, 2}) + "abcdef";
  const std::string labels_ = idx_header({3}) + std::string("\0\2\1", 3);
};

TEST_F(IdxSet, gives_images_and_labels_by_index) {
  const auto set = load(images_, gzipped(labels_));
  ASSERT_TRUE(set.ok()) << set.error().message;
  const Dataset& data = **set;
  EXPECT_EQ(data.count(), 3u);
  EXPECT_EQ(data.layout(), (SampleLayout{kernels::DType::u8, {1, 1, 2}, {}}));
  EXPECT_EQ(read_sample(data, 1).value(), (Sample{"cd", {2}}));
}

TEST_F(IdxSet, counts_that_differ_are_named_with_both_files) {
  const auto set = load(images_, idx_header({2}) + std::string("\0\1", 2));
  EXPECT_EQ(set.code(), Code::corrupt_data);
  EXPECT_THAT(set.error().message,
              AllOf(HasSubstr((folder_ / "images").native() + " has 3 images"),
                    HasSubstr((folder_ / "labels").native() + " has 2 labels")));
}

TEST_F(IdxSet, a_label_that_is_no_class_is_named_with_its_index) {
  const auto set = load(images_, idx_header({3}) + std::string("\0\2\3", 3));
  EXPECT_EQ(set.code(), Code::corrupt_data);
  EXPECT_THAT(set.error().message, HasSubstr("labels: label 2 is 3, but the classes are 0 to 2"));
}

TEST_F(IdxSet, files_that_were_swapped_are_told) {
  EXPECT_THAT(load(labels_, labels_).error().message,
              HasSubstr("images has the shape [3], but images are [count, height, width]"));
  EXPECT_THAT(load(images_, images_).error().message,
              HasSubstr("labels has the shape [3, 1, 2], but labels are [count]"));
}

TEST_F(IdxSet, a_set_of_nothing_is_refused) {
  EXPECT_THAT(load(idx_header({0, 1, 2}), idx_header({0})).error().message, HasSubstr("no images"));
  EXPECT_THAT(load(idx_header({3, 0, 2}), labels_).error().message, HasSubstr("no images"));
}

TEST_F(IdxSet, the_hash_is_of_the_content_and_not_of_how_it_is_packed) {
  const std::string hash = (*load(images_, labels_))->content_hash();
  EXPECT_EQ(hash.size(), 32u);
  EXPECT_EQ((*load(gzipped(images_), gzipped(labels_)))->content_hash(), hash);
  EXPECT_NE((*load(idx_header({3, 2, 1}) + "abcdef", labels_))->content_hash(), hash);
  EXPECT_NE((*load(idx_header({3, 1, 2}) + "abcdeg", labels_))->content_hash(), hash);
  EXPECT_NE((*load(images_, idx_header({3}) + std::string("\0\2\2", 3)))->content_hash(), hash);
}

TEST_F(IdxSet, samples_are_gathered_as_pixels_and_wide_labels) {
  const auto set = load(images_, labels_).value();
  Buffer images = Buffer::allocate(6).value();
  Buffer labels = Buffer::allocate(12).value();
  const std::uint32_t indices[] = {2, 0, 2};
  ASSERT_TRUE(gather(*set, indices, kForTest, images, labels).ok());
  EXPECT_EQ(std::memcmp(images.data(), "efabef", 6), 0);
  const std::int32_t wide[] = {1, 0, 1};
  EXPECT_EQ(std::memcmp(labels.data(), wide, sizeof(wide)), 0);

  ASSERT_TRUE(gather_run(*set, 1, 2, kForTest, images, labels).ok());
  EXPECT_EQ(std::memcmp(images.data(), "cdef", 4), 0);
}

TEST_F(IdxSet, gathering_checks_indices_and_room) {
  const auto set = load(images_, labels_).value();
  Buffer images = Buffer::allocate(5).value();
  Buffer labels = Buffer::allocate(12).value();
  const std::uint32_t outside[] = {0, 3};
  EXPECT_THAT(gather(*set, outside, kForTest, images, labels).error().message,
              HasSubstr("no sample 3"));
  const std::uint32_t three[] = {0, 1, 2};
  EXPECT_THAT(gather(*set, three, kForTest, images, labels).error().message,
              HasSubstr("room for 2 inputs"));
  EXPECT_EQ(gather_run(*set, 2, 2, kForTest, images, labels).code(), Code::invalid_argument);
  EXPECT_EQ(gather_run(*set, UINT64_MAX, 1, kForTest, images, labels).code(),
            Code::invalid_argument);
  EXPECT_TRUE(gather_run(*set, 3, 0, kForTest, images, labels).ok());
}

}  // namespace
}  // namespace troupe::train
