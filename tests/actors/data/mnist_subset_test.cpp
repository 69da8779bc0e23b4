#include <gtest/gtest.h>

#include "actors/data/idx_dataset.hpp"
#include "tests/actors/data/data_files.hpp"

namespace troupe::train {
namespace {

const std::filesystem::path kFolder = TROUPE_SOURCE_DIR "/examples/mnist/data";

TEST(MnistSubset, has_its_digits) {
  const auto train = IdxDataset::load(kFolder / "train-images-idx3-ubyte.gz",
                                      kFolder / "train-labels-idx1-ubyte.gz", 10);
  ASSERT_TRUE(train.ok()) << train.error().message;
  EXPECT_EQ((*train)->count(), 6000u);
  EXPECT_EQ((*train)->layout().input, (kernels::Shape{1, 28, 28}));
  // The set is known to begin with these.
  const int labels[] = {5, 0, 4, 1, 9, 2, 1, 3, 1, 4};
  for (std::size_t i = 0; i < std::size(labels); ++i)
    EXPECT_EQ(read_sample(**train, i)->labels[0], labels[i]);

  const auto test = IdxDataset::load(kFolder / "t10k-images-idx3-ubyte.gz",
                                     kFolder / "t10k-labels-idx1-ubyte.gz", 10);
  ASSERT_TRUE(test.ok()) << test.error().message;
  EXPECT_EQ((*test)->count(), 1000u);
  EXPECT_EQ(read_sample(**test, 0)->labels[0], 7);
}

TEST(MnistSubset, its_content_does_not_change) {
  const auto train = IdxDataset::load(kFolder / "train-images-idx3-ubyte.gz",
                                      kFolder / "train-labels-idx1-ubyte.gz", 10);
  const auto test = IdxDataset::load(kFolder / "t10k-images-idx3-ubyte.gz",
                                     kFolder / "t10k-labels-idx1-ubyte.gz", 10);
  EXPECT_EQ((*train)->content_hash(), "d16bd93d85a20b0ccf4e2f6ac9db2d2d");
  EXPECT_EQ((*test)->content_hash(), "c5c7359271b75528c11dbff309efa936");
}

}  // namespace
}  // namespace troupe::train
