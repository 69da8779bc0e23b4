#include "actors/data/idx.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/actors/data/idx_files.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Idx : public DataFiles {
protected:
  /// The sentence that a file with `content` is refused with; it must name the file.
  std::string refusal(const std::string& content, Code code = Code::corrupt_data,
                      const IdxLimits& limits = {}) const {
    const auto file = write("file", content);
    const auto array = read_idx(file, limits);
    EXPECT_EQ(array.code(), code);
    if (array.ok()) return "";
    EXPECT_THAT(array.error().message, HasSubstr(file.native()));
    return array.error().message;
  }
  static std::string text(const IdxArray& array) {
    return {reinterpret_cast<const char*>(array.data.data()), array.data.size()};
  }
};

const std::string kImages = idx_header({2, 3, 1}) + "abcdef";

TEST_F(Idx, is_read_as_it_is_and_gzipped) {
  for (const auto& content : {kImages, gzipped(kImages)}) {
    const auto array = read_idx(write("images", content));
    ASSERT_TRUE(array.ok()) << array.error().message;
    EXPECT_THAT(array->shape, ElementsAre(2, 3, 1));
    EXPECT_EQ(text(*array), "abcdef");
  }
}

TEST_F(Idx, gzip_members_one_after_the_other_are_one_file) {
  const auto file = write("images", gzipped(kImages.substr(0, 9)) + gzipped(kImages.substr(9)));
  const auto array = read_idx(file);
  ASSERT_TRUE(array.ok()) << array.error().message;
  EXPECT_EQ(text(*array), "abcdef");
}

TEST_F(Idx, larger_than_any_buffer_inside_is_read_whole) {
  std::mt19937 random(1);  // NOLINT: the same bytes each time
  std::string data(1 << 20, '\0');
  for (char& c : data) c = static_cast<char>(random());
  const std::string content = idx_header({1 << 10, 1 << 10}) + data;
  for (const auto& file : {write("plain", content), write("packed", gzipped(content))})
    EXPECT_EQ(text(*read_idx(file)), data);
}

TEST_F(Idx, a_file_that_is_not_there_is_named) {
  const auto array = read_idx(folder_ / "none.gz");
  EXPECT_EQ(array.code(), Code::not_found);
  EXPECT_THAT(array.error().message, HasSubstr((folder_ / "none.gz").native()));
}

TEST_F(Idx, what_is_no_file_is_refused) {
  EXPECT_EQ(read_idx(folder_).code(), Code::invalid_argument);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_idx(folder_ / "pipe").code(), Code::invalid_argument);
}

TEST_F(Idx, an_empty_file_is_refused) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal(gzipped("")), HasSubstr("truncated: 0 of the 4 bytes"));
}

TEST_F(Idx, a_truncated_file_is_told_from_every_length) {
  for (std::size_t size = 1; size < kImages.size(); ++size) {
    const std::string cut = kImages.substr(0, size);
    EXPECT_THAT(refusal(cut), HasSubstr("truncated")) << size;
    EXPECT_THAT(refusal(gzipped(cut)), AllOf(HasSubstr("truncated"), HasSubstr("unpacked")))
        << size;
  }
  EXPECT_THAT(
      refusal(gzipped(kImages.substr(0, 20))),
      HasSubstr("at byte 20 unpacked: the file is truncated: 4 of the 6 bytes of its data"));
}

TEST_F(Idx, gzip_data_that_is_cut_off_is_told_from_every_length) {
  const std::string packed = gzipped(kImages);
  for (std::size_t size = 2; size < packed.size(); ++size)
    EXPECT_THAT(refusal(packed.substr(0, size)), HasSubstr("cut off")) << size;
}

TEST_F(Idx, a_flipped_bit_in_gzip_data_never_changes_what_is_read) {
  const std::string packed = gzipped(kImages);
  for (std::size_t bit = 0; bit < packed.size() * 8; ++bit) {
    std::string altered = packed;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
    const auto array = read_idx(write("file", altered));
    // gzip's header has bits without a meaning, such as its time.
    if (array.ok()) {
      EXPECT_EQ(text(*array), "abcdef") << "bit " << bit;
    } else {
      EXPECT_EQ(array.code(), Code::corrupt_data) << "bit " << bit;
    }
  }
}

TEST_F(Idx, more_than_the_header_says_is_refused) {
  EXPECT_THAT(refusal(kImages + "g"), HasSubstr("at byte 22: there is more after the 6 bytes"));
  EXPECT_THAT(refusal(gzipped(kImages + "g")), HasSubstr("there is more"));
  EXPECT_THAT(refusal(gzipped(kImages) + "junk"), HasSubstr("is damaged at byte"));
}

TEST_F(Idx, what_is_no_idx_file_of_bytes_is_refused_with_the_byte) {
  EXPECT_THAT(refusal("PNG and more"),
              HasSubstr("at byte 0: this is no IDX file, it begins with 50"));
  EXPECT_THAT(refusal(idx_header({1}, 0x0d) + "abcd"),
              HasSubstr("at byte 2: elements are of type 0x0d"));
  EXPECT_THAT(refusal(idx_header({}) + "a"), HasSubstr("at byte 3: it has 0 dimensions"));
  EXPECT_THAT(refusal(idx_header(std::vector<std::uint32_t>(200, 1)) + "a"),
              HasSubstr("200 dimensions"));
}

TEST_F(Idx, a_size_that_the_file_cannot_hold_costs_no_memory) {
  for (const auto& shape : {std::vector<std::uint32_t>{0xffffffff, 28, 28},
                            std::vector<std::uint32_t>{0xffffffff, 0xffffffff, 0xffffffff, 4}}) {
    EXPECT_THAT(refusal(idx_header(shape) + "abc"), HasSubstr("more than the file can hold"));
    EXPECT_THAT(refusal(gzipped(idx_header(shape) + "abc")),
                HasSubstr("more than the file can hold"));
  }
}

TEST_F(Idx, above_the_limit_is_refused) {
  EXPECT_THAT(refusal(kImages, Code::resource_exhausted, {.max_bytes = 5}),
              HasSubstr("6 bytes of data, but at most 5"));
  EXPECT_TRUE(read_idx(write("file", kImages), {.max_bytes = 6}).ok());
}

TEST_F(Idx, random_bytes_are_refused) {
  std::mt19937 random(7);  // NOLINT: the same bytes each time
  for (int n = 0; n < 500; ++n) {
    std::string content(1 + random() % 100, '\0');
    for (char& c : content) c = static_cast<char>(random());
    if (n % 2 == 0) content = std::string("\x1f\x8b\x08", 3) + content;
    if (n % 3 == 0) content = idx_header({static_cast<std::uint32_t>(random())}) + content;
    (void)refusal(content);
  }
}

}  // namespace
}  // namespace troupe::train
