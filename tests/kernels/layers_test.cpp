#include <string>

#include <gtest/gtest.h>

#include "tests/kernels/gradient_check.hpp"

namespace troupe::kernels {
namespace {

/// Every layer, by each kernel that there is for it.
class Layers : public testing::TestWithParam<KernelChoice> {
protected:
  void check(Shape input, std::vector<LayerSpec> layers, std::int64_t batch = 3) {
    check_gradients({input, std::move(layers), batch, GetParam()});
  }
};

TEST_P(Layers, convolution_of_one_channel_with_padding) {
  check({1, 6, 7}, {Convolution{.name = "c", .out_channels = 3, .kernel = 5, .padding = 2}});
}
TEST_P(Layers, convolution_of_several_channels_without_padding) {
  check({3, 6, 5}, {Convolution{.name = "c", .out_channels = 4, .kernel = 3}});
}
TEST_P(Layers, convolution_of_more_channels_than_a_register_holds) {
  check({4, 4, 4}, {Convolution{.name = "c", .out_channels = 17, .kernel = 3, .padding = 1}}, 1);
}
TEST_P(Layers, convolution_with_a_stride) {
  check({2, 7, 8},
        {Convolution{.name = "c", .out_channels = 3, .kernel = 3, .stride = 2, .padding = 1}});
}
TEST_P(Layers, convolution_of_single_pixels) {
  check({3, 3, 4}, {Convolution{.name = "c", .out_channels = 5, .kernel = 1}});
}
TEST_P(Layers, convolution_with_a_window_as_large_as_its_input) {
  check({2, 5, 5}, {Convolution{.name = "c", .out_channels = 3, .kernel = 5}});
}
TEST_P(Layers, convolution_whose_windows_hang_over_every_edge) {
  check({1, 2, 3}, {Convolution{.name = "c", .out_channels = 2, .kernel = 5, .padding = 3}});
}
TEST_P(Layers, linear) {
  check({7}, {Linear{"l", 5}});
}
TEST_P(Layers, linear_of_one_feature) {
  check({1}, {Linear{"l", 1}}, 1);
}
TEST_P(Layers, linear_of_sizes_that_are_no_multiples_of_anything) {
  check({37}, {Linear{"l", 23}}, 19);
}
TEST_P(Layers, linear_of_a_batch_of_many_groups) {
  check({11}, {Linear{"l", 13}}, 40);
}
TEST_P(Layers, relu_of_features) {
  check({9}, {Relu{}});
}
TEST_P(Layers, relu_of_images) {
  check({2, 3, 5}, {Relu{}});
}
TEST_P(Layers, max_pooling) {
  check({2, 6, 4}, {Pooling{}});
}
TEST_P(Layers, max_pooling_that_leaves_an_edge_out) {
  check({2, 5, 7}, {Pooling{}});
}
TEST_P(Layers, max_pooling_with_overlap_and_padding) {
  check({2, 6, 5}, {Pooling{.kernel = 3, .stride = 2, .padding = 1}});
}
TEST_P(Layers, average_pooling) {
  check({2, 6, 4}, {Pooling{.kind = Pooling::Kind::average}});
}
TEST_P(Layers, average_pooling_with_overlap_and_padding) {
  check({2, 6, 5},
        {Pooling{.kind = Pooling::Kind::average, .kernel = 3, .stride = 2, .padding = 1}});
}
TEST_P(Layers, flatten_between_images_and_features) {
  check({3, 2, 4}, {Flatten{}, Linear{"l", 3}});
}
TEST_P(Layers, convolution_relu_and_max_pooling_in_a_row) {
  check({2, 9, 9}, {Convolution{.name = "c", .out_channels = 5, .kernel = 3, .padding = 1}, Relu{},
                    Pooling{}});
}
TEST_P(Layers, convolution_relu_and_pooling_by_three) {
  check({1, 11, 8}, {Convolution{.name = "c", .out_channels = 2, .kernel = 3}, Relu{},
                     Pooling{.kernel = 3, .stride = 3}});
}
TEST_P(Layers, convolution_relu_and_overlapping_pooling) {
  check({1, 8, 8}, {Convolution{.name = "c", .out_channels = 2, .kernel = 3}, Relu{},
                    Pooling{.kernel = 3, .stride = 2, .padding = 1}});
}
TEST_P(Layers, a_whole_small_network_of_more_than_one_group_of_samples) {
  check({1, 8, 8},
        {Convolution{.name = "c1", .out_channels = 2, .kernel = 3, .padding = 1}, Relu{}, Pooling{},
         Convolution{.name = "c2", .out_channels = 3, .kernel = 3}, Relu{},
         Pooling{.kind = Pooling::Kind::average}, Flatten{}, Linear{"f1", 5}, Relu{},
         Linear{"f2", 4}},
        9);
}

std::string name_of(const testing::TestParamInfo<KernelChoice>& info) {
  switch (info.param) {
    case KernelChoice::automatic:
      return "automatic";
    case KernelChoice::portable:
      return "portable";
    case KernelChoice::library:
      return "library";
  }
  return "unknown";
}

INSTANTIATE_TEST_SUITE_P(By, Layers,
                         testing::Values(KernelChoice::automatic, KernelChoice::portable,
                                         KernelChoice::library),
                         name_of);

TEST(LayersByTwoThreads, of_every_kind_are_right_too) {
  check_gradients({{3, 8, 8},
                   {Convolution{.name = "c", .out_channels = 8, .kernel = 3, .padding = 1}, Relu{},
                    Pooling{}, Flatten{}, Linear{"f", 4}},
                   5,
                   KernelChoice::library,
                   2});
}

}  // namespace
}  // namespace troupe::kernels
