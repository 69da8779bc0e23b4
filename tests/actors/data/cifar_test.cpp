#include "actors/data/cifar.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/data/data_files.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A record whose image is a function of `seed`.
std::string record(char label, int seed) {
  std::string bytes(1, label);
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(1 + (i * 7 + i / 32 + seed * 31) % 255);
  return bytes;
}

class Cifar : public DataFiles {
protected:
  Result<std::unique_ptr<CifarDataset>> load(const std::string& content,
                                             const CifarOptions& options = {}) const {
    return CifarDataset::load({write("data_batch_1.bin", content)}, options);
  }
};

TEST_F(Cifar, gives_records_of_all_files_in_the_order_of_their_names) {
  write("data_batch_2.bin", record(3, 2));
  write("data_batch_1.bin", record(9, 0) + record(1, 1));
  write("test_batch.bin", record(4, 3));
  write("readme.html", "x");
  const auto files = CifarDataset::find_files(folder_, CifarKind::cifar10, true);
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(*files, ElementsAre(folder_ / "data_batch_1.bin", folder_ / "data_batch_2.bin"));
  const auto set = CifarDataset::load(*files, {});
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ((*set)->count(), 3u);
  EXPECT_EQ((*set)->layout(), (SampleLayout{kernels::DType::u8, {3, 32, 32}, {}}));
  EXPECT_EQ(read_sample(**set, 2).value(), (Sample{record(3, 2).substr(1), {3}}));
  EXPECT_THAT(*CifarDataset::find_files(folder_, CifarKind::cifar10, false),
              ElementsAre(folder_ / "test_batch.bin"));
}

TEST_F(Cifar, a_hundred_classes_have_two_labels_of_which_the_fine_one_counts) {
  const auto set = load("\x07" + record(99, 5), {.kind = CifarKind::cifar100, .classes = 100});
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(read_sample(**set, 0).value(), (Sample{record(99, 5).substr(1), {99}}));
}

TEST_F(Cifar, crops_and_flips_by_seed_epoch_and_index_alone_and_in_training_only) {
  const std::string content = record(0, 1) + record(1, 2);
  const auto set = load(content, {.crop_and_flip = true, .seed = 7}).value();
  const auto again = load(content, {.crop_and_flip = true, .seed = 7}).value();
  const auto other = load(content, {.crop_and_flip = true, .seed = 8}).value();
  EXPECT_EQ(read_sample(*set, 1)->input, record(1, 2).substr(1));
  std::set<std::string> seen;
  int same_as_other_seed = 0;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const Use use{.training = true, .epoch = epoch};
    const auto sample = read_sample(*set, 1, use).value();
    EXPECT_EQ(sample.labels[0], 1);
    EXPECT_EQ(sample, read_sample(*again, 1, use).value());
    same_as_other_seed += sample == read_sample(*other, 1, use).value();
    seen.insert(sample.input);
  }
  EXPECT_GT(seen.size(), 15u);
  EXPECT_LT(same_as_other_seed, 5);
}

TEST_F(Cifar, a_crop_is_the_image_moved_by_at_most_four_pixels_on_black) {
  const auto set = load(record(0, 1), {.crop_and_flip = true, .seed = 7}).value();
  const std::string image = record(0, 1).substr(1);
  const auto pixel = [](const std::string& planes, int channel, int y, int x) {
    return y < 0 || y > 31 || x < 0 || x > 31
               ? '\0'
               : planes[static_cast<std::size_t>((channel * 32 + y) * 32 + x)];
  };
  const auto fits = [&](const std::string& sample, int dy, int dx, bool flipped) {
    for (int channel = 0; channel < 3; ++channel)
      for (int y = 0; y < 32; ++y)
        for (int x = 0; x < 32; ++x)
          if (pixel(sample, channel, y, flipped ? 31 - x : x) !=
              pixel(image, channel, y + dy, x + dx))
            return false;
    return true;
  };
  for (std::uint64_t epoch = 0; epoch < 30; ++epoch) {
    const auto sample = read_sample(*set, 0, {.training = true, .epoch = epoch})->input;
    int matches = 0;
    for (int dy = -4; dy <= 4; ++dy)
      for (int dx = -4; dx <= 4; ++dx)
        for (const bool flipped : {false, true}) matches += fits(sample, dy, dx, flipped);
    EXPECT_EQ(matches, 1) << "epoch " << epoch;
  }
}

TEST_F(Cifar, a_part_of_a_record_is_named_with_file_and_byte) {
  const auto set = load(record(0, 1) + "abc");
  EXPECT_EQ(set.code(), Code::corrupt_data);
  EXPECT_THAT(set.error().message,
              AllOf(HasSubstr((folder_ / "data_batch_1.bin").native() + " has 3076 bytes"),
                    HasSubstr("from byte 3073 on")));
  EXPECT_THAT(error_of(load("")), HasSubstr("is empty"));
}

TEST_F(Cifar, a_label_that_is_no_class_is_named_with_file_and_byte) {
  EXPECT_THAT(error_of(load(record(0, 1) + record(10, 1))),
              HasSubstr("data_batch_1.bin at byte 3073: the label of record 1 is 10, but the "
                        "classes are 0 to 9"));
}

TEST_F(Cifar, a_folder_without_its_files_says_which_are_looked_for) {
  const auto files = CifarDataset::find_files(folder_, CifarKind::cifar10, true);
  EXPECT_EQ(files.code(), Code::not_found);
  EXPECT_THAT(files.error().message, HasSubstr("has no data_batch_*.bin"));
  EXPECT_EQ(CifarDataset::find_files(folder_ / "none", CifarKind::cifar10, true).code(),
            Code::not_found);
}

TEST_F(Cifar, a_file_that_is_missing_between_others_is_named) {
  write("data_batch_1.bin", record(3, 2));
  write("data_batch_3.bin", record(9, 0));
  const auto files = CifarDataset::find_files(folder_, CifarKind::cifar10, true);
  ASSERT_EQ(files.code(), Code::not_found);
  EXPECT_THAT(files.error().message, AllOf(HasSubstr(folder_.native()),
                                           HasSubstr("data_batch_3.bin, but no data_batch_2.bin")));
  write("data_batch_2.bin", record(1, 1));
  write("data_batch_mine.bin", record(1, 1));
  EXPECT_EQ(CifarDataset::find_files(folder_, CifarKind::cifar10, true)->size(), 4u);
}

TEST_F(Cifar, the_hash_is_of_the_content) {
  const auto hash = [&](const std::string& content) {
    return load(content).value()->content_hash();
  };
  EXPECT_EQ(hash(record(0, 1)), hash(record(0, 1)));
  EXPECT_NE(hash(record(0, 1)), hash(record(0, 2)));
  EXPECT_NE(hash(record(0, 1)), hash(record(1, 1)));
}

}  // namespace
}  // namespace troupe::train
