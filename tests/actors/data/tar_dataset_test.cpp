#include "actors/data/tar_dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/data/data_files.hpp"
#include "tests/actors/data/picture_files.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string image(std::uint32_t seed) {
  return png_of(picture(10, 12, seed), 10, 12);
}
std::string sample(const std::string& name, std::uint32_t seed, const std::string& label) {
  return tar_entry(name + ".cls", label) + tar_entry(name + ".png", image(seed));
}
const std::string kEnd(1024, '\0');

class Tar : public DataFiles {
protected:
  Result<std::unique_ptr<TarDataset>> open(const std::string& content) const {
    return TarDataset::open(write("a.tar", content), {.classes = 3, .size = 8});
  }
};

TEST_F(Tar, samples_are_pairs_of_entries_in_the_order_of_the_shards) {
  write("set/1.tar", sample("x/c.d", 3, "1\n"));  // without the end
  write("set/0.tar", tar_entry("x/", "", '5') + sample("x/b", 1, "2") +
                         tar_entry("x/b.json", "{}") + sample("x/a", 2, "0") + kEnd);
  write("set/readme", "x");
  // The name up to its first dot counts: c.d.cls is of no kind that is known.
  EXPECT_EQ(TarDataset::open(folder_ / "set", {.classes = 3, .size = 8})->get()->count(), 2u);
  write("set/1.tar", sample("x/c", 3, "1\n"));
  const auto set = TarDataset::open(folder_ / "set", {.classes = 3, .size = 8});
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ((*set)->count(), 3u);
  EXPECT_EQ((*set)->layout(), (SampleLayout{kernels::DType::u8, {3, 8, 8}, {}}));
  EXPECT_EQ(read_sample(**set, 0)->labels[0], 2);
  EXPECT_EQ(read_sample(**set, 1)->labels[0], 0);
  EXPECT_EQ(read_sample(**set, 2)->labels[0], 1);
  EXPECT_NE(read_sample(**set, 0)->input, read_sample(**set, 2)->input);
}

TEST_F(Tar, long_names_of_gnu_and_pax_are_read) {
  const std::string long_name(150, 'n');
  const auto gnu = [&](const std::string& extension, const std::string& content) {
    return tar_entry("././@LongLink", long_name + extension + '\0', 'L') +
           tar_entry(long_name.substr(0, 100), content);
  };
  const auto pax = [&](const std::string& extension, const std::string& content) {
    const std::string record = " path=" + long_name + extension + "\n";
    return tar_entry("pax", std::to_string(record.size() + 3) + record, 'x') +
           tar_entry(long_name.substr(0, 100), content);
  };
  EXPECT_EQ(open(gnu(".cls", "1") + gnu(".png", image(1)) + kEnd).value()->count(), 1u);
  EXPECT_EQ(open(pax(".cls", "1") + pax(".png", image(1)) + kEnd).value()->count(), 1u);
}

TEST_F(Tar, a_damaged_or_truncated_shard_is_named_with_the_byte) {
  const std::string good = sample("a", 1, "1") + sample("b", 2, "2");
  EXPECT_THAT(error_of(open(good.substr(0, 1600))),
              AllOf(HasSubstr("a.tar at byte 1024"), HasSubstr("behind the file's end")));
  EXPECT_THAT(error_of(open(good.substr(0, 1024 + 100))), HasSubstr("a part of a tar header"));
  std::string damaged = good;
  damaged[1024 + 3] = 'z';
  EXPECT_THAT(error_of(open(damaged)), HasSubstr("a.tar at byte 1024: this is no tar header"));
  EXPECT_THAT(error_of(open("")), HasSubstr("is empty"));
  EXPECT_THAT(error_of(open(kEnd)), HasSubstr("has no entries NAME.jpg"));
  EXPECT_EQ(TarDataset::open(folder_ / "none.tar", {}).code(), Code::not_found);
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(error_of(TarDataset::open(folder_ / "empty", {})), HasSubstr("has no files *.tar"));
}

TEST_F(Tar, a_sample_without_its_class_or_its_image_is_named) {
  EXPECT_THAT(error_of(open(tar_entry("a.png", image(1)) + sample("b", 1, "1"))),
              HasSubstr("at byte 0: a.png has no NAME.cls"));
  EXPECT_THAT(error_of(open(tar_entry("a.cls", "1") + kEnd)), HasSubstr("a.cls has no image"));
  EXPECT_THAT(error_of(open(sample("a", 1, "1") + tar_entry("a.jpg", "x"))), HasSubstr("twice"));
}

TEST_F(Tar, a_class_that_is_no_number_below_the_classes_is_named) {
  EXPECT_THAT(error_of(open(sample("a", 1, "3"))),
              HasSubstr("a.cls is 3, but the classes are 0 to 2"));
  EXPECT_THAT(error_of(open(sample("a", 1, "cat"))), HasSubstr("not a decimal number"));
  EXPECT_THAT(error_of(open(sample("a", 1, "-1"))), HasSubstr("not a decimal number"));
  EXPECT_THAT(error_of(open(sample("a", 1, ""))), HasSubstr("not a decimal number"));
  EXPECT_THAT(error_of(open(sample("a", 1, std::string(99, '1')))), HasSubstr("99 bytes"));
}

TEST_F(Tar, an_image_that_cannot_be_decoded_is_named_when_it_is_read) {
  const auto set =
      open(tar_entry("a.cls", "1") + tar_entry("a.jpg", "x") + sample("b", 1, "1")).value();
  EXPECT_EQ(read_sample(*set, 0).code(), Code::corrupt_data);
  EXPECT_THAT(read_sample(*set, 0).error().message, HasSubstr("a.tar at byte 1536: it is neither"));
  EXPECT_TRUE(read_sample(*set, 1).ok());
}

TEST_F(Tar, the_hash_is_of_names_classes_and_content) {
  const auto hash = [&](const std::string& content) {
    return open(content).value()->content_hash();
  };
  const auto before = hash(sample("a", 1, "1"));
  EXPECT_EQ(hash(sample("a", 1, "1")), before);
  EXPECT_NE(hash(sample("b", 1, "1")), before);
  EXPECT_NE(hash(sample("a", 2, "1")), before);
  EXPECT_NE(hash(sample("a", 1, "2")), before);
}

}  // namespace
}  // namespace troupe::train
