#include "actors/data/image_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/data/data_files.hpp"
#include "tests/actors/data/picture_files.hpp"

namespace troupe::train {
namespace {

using testing::HasSubstr;

class Images : public DataFiles {
protected:
  Images() {
    write("set/dog/b.png", png_of(picture(20, 30, 3), 20, 30));
    write("set/cat/2.jpg", jpeg_of(picture(24, 24, 2), 24, 24));
    write("set/cat/10.JPEG", jpeg_of(picture(24, 24, 1), 24, 24));
    write("set/.DS_Store", "x");
  }
  Result<std::unique_ptr<ImageFolder>> open(PictureOptions options = {.classes = 2,
                                                                      .size = 8}) const {
    return ImageFolder::open(folder_ / "set", options);
  }
};

TEST_F(Images, classes_and_files_are_in_the_order_of_their_names) {
  const auto set = open();
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ((*set)->count(), 3u);
  EXPECT_EQ((*set)->layout(), (SampleLayout{kernels::DType::u8, {3, 8, 8}, {}}));
  EXPECT_EQ(read_sample(**set, 0)->labels[0], 0);  // cat/10.JPEG
  EXPECT_EQ(read_sample(**set, 1)->labels[0], 0);  // cat/2.jpg
  EXPECT_EQ(read_sample(**set, 2)->labels[0], 1);  // dog/b.png
  EXPECT_NE(read_sample(**set, 0)->input, read_sample(**set, 1)->input);
}

TEST_F(Images, are_cut_at_random_in_training_by_seed_epoch_and_index_alone) {
  const PictureOptions options{.classes = 2, .size = 8, .crop_and_flip = true, .seed = 5};
  const auto set = open(options).value(), again = open(options).value();
  const Use first{.training = true, .epoch = 0}, second{.training = true, .epoch = 1};
  EXPECT_EQ(read_sample(*set, 2, first).value(), read_sample(*again, 2, first).value());
  EXPECT_NE(read_sample(*set, 2, first).value(), read_sample(*set, 2, second).value());
  EXPECT_EQ(read_sample(*set, 2).value(), read_sample(*open().value(), 2).value());
}

TEST_F(Images, the_hash_is_of_names_and_content) {
  const auto hash = open().value()->content_hash();
  EXPECT_EQ(open().value()->content_hash(), hash);
  std::filesystem::rename(folder_ / "set/dog/b.png", folder_ / "set/dog/c.png");
  EXPECT_NE(open().value()->content_hash(), hash);
  std::filesystem::rename(folder_ / "set/dog/c.png", folder_ / "set/dog/b.png");
  EXPECT_EQ(open().value()->content_hash(), hash);
  write("set/dog/b.png", png_of(picture(20, 30, 4), 20, 30));
  EXPECT_NE(open().value()->content_hash(), hash);
}

TEST_F(Images, a_file_that_cannot_be_decoded_is_named_when_it_is_read) {
  write("set/cat/2.jpg", "no picture");
  write("set/cat/3.jpg", "");
  const auto set = open();
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(read_sample(**set, 1).code(), Code::corrupt_data);
  EXPECT_THAT(read_sample(**set, 1).error().message,
              HasSubstr((folder_ / "set/cat/2.jpg").native() + ": it is neither"));
  EXPECT_EQ(read_sample(**set, 2).code(), Code::corrupt_data);
  EXPECT_THAT(read_sample(**set, 2).error().message, HasSubstr("3.jpg is empty"));
  EXPECT_TRUE(read_sample(**set, 3).ok());
  std::filesystem::remove(folder_ / "set/dog/b.png");
  EXPECT_EQ(read_sample(**set, 3).code(), Code::not_found);
}

TEST_F(Images, what_does_not_belong_there_is_named) {
  EXPECT_THAT(error_of(open({.classes = 1, .size = 8})),
              HasSubstr("the folder dog is one too many"));
  write("set/cat/readme.txt", "x");
  EXPECT_THAT(error_of(open()), HasSubstr("readme.txt is not called .jpg"));
  std::filesystem::remove(folder_ / "set/cat/readme.txt");
  std::filesystem::create_directory(folder_ / "set/cat/more.jpg");
  EXPECT_THAT(error_of(open()), HasSubstr("more.jpg is not a file"));
  std::filesystem::remove(folder_ / "set/cat/more.jpg");
  write("set/list.txt", "x");
  EXPECT_THAT(error_of(open({.classes = 2, .size = 8})), HasSubstr("list.txt is not a folder"))
      << "and no class too many";
  std::filesystem::remove(folder_ / "set/list.txt");
  std::filesystem::remove(folder_ / "set/dog/b.png");
  EXPECT_THAT(error_of(open()), HasSubstr("dog has no images"));
  std::filesystem::remove(folder_ / "set/dog");
  write("set/dog", "x");
  EXPECT_THAT(error_of(open()), HasSubstr("dog is not a folder"));
  EXPECT_EQ(ImageFolder::open(folder_ / "none", {}).code(), Code::not_found);
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(error_of(ImageFolder::open(folder_ / "empty", {})), HasSubstr("is empty"));
}

}  // namespace
}  // namespace troupe::train
