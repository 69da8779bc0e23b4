// Files that were cut or changed at random: an error or a sample, never the end of the process.
#include <random>

#include <gtest/gtest.h>

#include "actors/data/cifar.hpp"
#include "actors/data/idx_dataset.hpp"
#include "actors/data/image_folder.hpp"
#include "actors/data/tar_dataset.hpp"
#include "actors/data/tokens.hpp"
#include "tests/actors/data/data_files.hpp"
#include "tests/actors/data/idx_files.hpp"
#include "tests/actors/data/picture_files.hpp"

namespace troupe::train {
namespace {

constexpr std::uint32_t kSeeds = 300;

/// One to eight bytes changed, and a part cut off at every third.
std::string damaged(std::string file, std::uint32_t seed) {
  std::mt19937 random(seed);
  if (seed % 3 == 0) file.resize(random() % file.size());
  if (file.empty()) return file;
  for (std::uint32_t i = random() % 8 + 1; i > 0; --i)
    file[random() % file.size()] = static_cast<char>(random());
  return file;
}

class DamagedFiles : public DataFiles {
protected:
  /// Opens what `open` makes of the damaged file, and reads all its samples.
  void expect_no_crash(const std::string& name, const std::string& file, auto open) {
    for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      write(name, damaged(file, seed));
      const auto set = open();
      if (!set.ok()) {
        EXPECT_FALSE(set.error().message.empty());
        continue;
      }
      for (std::uint64_t i = 0; i < (*set)->count(); ++i) {
        const auto sample = read_sample(**set, i, {.training = true});
        EXPECT_TRUE(sample.ok() || sample.code() == Code::corrupt_data) << error_of(sample);
      }
    }
  }
};

TEST_F(DamagedFiles, idx) {
  const auto labels = write("labels", idx_header({4}) + std::string(4, '\0'));
  for (const bool packed : {false, true}) {
    const std::string images = idx_header({4, 2, 3}) + std::string(24, 'x');
    expect_no_crash("images", packed ? gzipped(images) : images,
                    [&] { return IdxDataset::load(folder_ / "images", labels, 3); });
  }
}

TEST_F(DamagedFiles, cifar) {
  expect_no_crash("test_batch.bin", std::string(3073 * 3, '\0'), [&] {
    return CifarDataset::load({folder_ / "test_batch.bin"}, {.classes = 200});
  });
}

TEST_F(DamagedFiles, tokens) {
  expect_no_crash("tokens", std::string(64, '\1'), [&] {
    return TokenDataset::open(folder_ / "tokens", {TokenType::u16, 4, 300});
  });
}

TEST_F(DamagedFiles, pictures) {
  const auto pixels = picture(30, 20, 1);
  for (const auto& file :
       {jpeg_of(pixels, 30, 20), jpeg_of(pixels, 30, 20, true), png_of(pixels, 30, 20)})
    expect_no_crash("set/a/1.jpg", file, [&] {
      return ImageFolder::open(folder_ / "set", {.classes = 1, .size = 8, .crop_and_flip = true});
    });
}

TEST_F(DamagedFiles, tar) {
  std::string file;
  for (const char* name : {"a", "b", "c"})
    file += tar_entry(std::string(name) + ".cls", "1") +
            tar_entry(std::string(name) + ".png", png_of(picture(4, 4, 1), 4, 4));
  const auto record = std::string("13 path=d.cls\n");
  file += tar_entry("pax", record, 'x') + tar_entry("x", "1") + tar_entry("d.png", "x");
  expect_no_crash("a.tar", file,
                  [&] { return TarDataset::open(folder_ / "a.tar", {.classes = 3, .size = 8}); });
}

}  // namespace
}  // namespace troupe::train
