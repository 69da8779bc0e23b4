#include "actors/train/non_finite.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/models.hpp"

namespace troupe::train {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class FindNonFinite : public testing::Test {
protected:
  const kernels::Model model_ = kernels::make_model("lenet5").value();
  std::vector<float> gradient_ = std::vector<float>(model_.flat_size(), 1.0f);

  std::optional<NonFinite> find(std::uint64_t begin, std::uint64_t end) const {
    return find_non_finite(model_, begin, std::span(gradient_).subspan(begin, end - begin));
  }
};

TEST_F(FindNonFinite, each_parameter_is_named_by_its_first_and_last_element) {
  EXPECT_FALSE(find(0, gradient_.size()));
  for (const auto& info : model_.parameters())
    for (const auto at : {info.offset, info.offset + info.elements - 1}) {
      gradient_[at] = kNaN;
      const auto found = find(0, gradient_.size());
      ASSERT_TRUE(found) << info.name;
      EXPECT_EQ(found->where, info.name);
      EXPECT_TRUE(found->nan);
      gradient_[at] = 1.0f;
    }
}

TEST_F(FindNonFinite, of_several_the_one_is_named_that_backward_came_to_first) {
  gradient_[0] = kNaN;
  gradient_[model_.parameters()[3].offset] = -kInfinity;
  const auto found = find(0, gradient_.size());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->where, "conv2.bias");
  EXPECT_FALSE(found->nan);
}

TEST_F(FindNonFinite, a_run_may_begin_and_end_in_the_middle_of_a_parameter) {
  const auto& info = model_.parameters()[4];
  gradient_[info.offset + 7] = kInfinity;
  EXPECT_EQ(find(info.offset + 5, info.offset + 8)->where, info.name);
  EXPECT_FALSE(find(info.offset + 8, info.offset + 100));
  EXPECT_FALSE(find(0, info.offset + 7));
}

TEST_F(FindNonFinite, a_sentence_says_whose_it_is_and_where) {
  NonFinite x{.rank = 3, .where = "conv1.weight", .nan = true};
  EXPECT_EQ(describe(x), "the gradient of rank 3 is NaN in conv1.weight");
  x.nan = false;
  x.where.clear();
  EXPECT_EQ(describe(x), "the loss of rank 3 is infinite");
  x.rank = NonFinite::kSum;
  x.where = "fc1.bias";
  EXPECT_EQ(describe(x),
            "the gradient summed over all ranks is infinite in fc1.bias, though each rank's is "
            "finite");
}

}  // namespace
}  // namespace troupe::train
