#include "actors/train/weights.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/model_builder.hpp"
#include "tests/actors/checkpoint/fake_file_system.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Weights : public testing::Test {
protected:
  static kernels::Model make() {
    return kernels::Model::build(
               "small", {2, 3, 3},
               {kernels::Convolution{.name = "conv", .out_channels = 3}, kernels::BatchNorm{"bn"},
                kernels::Flatten{}, kernels::Linear{"fc", 2}})
        .value();
  }

  /// A file with one tensor per parameter but for `change`, which may turn it into another or (by
  /// an empty name) leave it out.
  template <class Change>
  void write(const Change& change) {
    std::vector<TensorView> tensors;
    for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
      const auto& info = model_.parameters()[i];
      TensorView tensor{.name = info.name, .shape = {}, .bytes = {}};
      for (const auto size : info.shape.dims())
        tensor.shape.push_back(static_cast<std::uint64_t>(size));
      tensor.bytes = std::as_bytes(parameters_.values(i));
      change(tensor);
      if (!tensor.name.empty()) tensors.push_back(tensor);
    }
    ASSERT_TRUE(write_safetensors(files_, file_, std::move(tensors), {}).ok());
  }

  Result<kernels::Parameters> load() {
    auto loaded = kernels::Parameters::initialized(model_, 2).value();
    TROUPE_TRY(load_weights(files_, file_, loaded));
    return loaded;
  }

  std::string error_of_load() {
    auto loaded = kernels::Parameters::initialized(model_, 2).value();
    const auto before = loaded.clone().value();
    const auto result = load_weights(files_, file_, loaded, options_);
    EXPECT_TRUE(std::ranges::equal(loaded.values(), before.values())) << "nothing changes";
    return result.ok() ? "none" : to_string(result.error());
  }

  FakeFileSystem files_;
  const std::filesystem::path file_ = "/weights.safetensors";
  LoadOptions options_;
  const kernels::Model model_ = make();
  kernels::Parameters parameters_ = kernels::Parameters::initialized(model_, 1).value();
};

TEST_F(Weights, are_read_as_they_were_written) {
  ASSERT_TRUE(save_weights(files_, file_, parameters_, 17, {{"by", "us"}}).ok());
  EXPECT_TRUE(std::ranges::equal(load()->values(), parameters_.values()));
}

TEST_F(Weights, are_what_pytorchs_state_dict_has) {
  ASSERT_TRUE(save_weights(files_, file_, parameters_, 17).ok());
  const auto content = read_safetensors(files_, file_).value();
  std::vector<std::string> names;
  for (const auto& tensor : content.tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre(
                         "conv.weight", "conv.bias", "bn.weight", "bn.bias", "bn.running_mean",
                         "bn.running_var", "bn.num_batches_tracked", "fc.weight", "fc.bias"));
  const TensorView* const batches = content.find("bn.num_batches_tracked");
  EXPECT_EQ(batches->dtype, "I64");
  EXPECT_TRUE(batches->shape.empty());
  EXPECT_EQ(batches->bytes[0], std::byte{17});
}

TEST_F(Weights, of_half_precision_are_widened) {
  const std::uint16_t bf16[] = {0x3f80, 0xc020};         // 1, -2.5
  const std::uint16_t f16[] = {0x3c00, 0xc100, 0x0001};  // 1, -2.5, 2^-24
  write([&](TensorView& tensor) {
    if (tensor.name == "fc.bias") {
      tensor.dtype = "BF16";
      tensor.bytes = std::as_bytes(std::span(bf16));
    } else if (tensor.name == "bn.bias") {
      tensor.dtype = "F16";
      tensor.bytes = std::as_bytes(std::span(f16));
    }
  });
  const auto loaded = load().value();
  EXPECT_THAT(loaded.values(*model_.find_parameter("fc.bias")), testing::ElementsAre(1.0f, -2.5f));
  EXPECT_THAT(loaded.values(*model_.find_parameter("bn.bias")),
              testing::ElementsAre(1.0f, -2.5f, 0x1p-24f));
}

TEST_F(Weights, that_are_no_numbers_are_named) {
  const std::uint16_t f16[] = {0x3c00, 0x7c00};  // 1, infinity
  write([&](TensorView& tensor) {
    if (tensor.name != "fc.bias") return;
    tensor.dtype = "F16";
    tensor.bytes = std::as_bytes(std::span(f16));
  });
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("weights.safetensors"), HasSubstr("'fc.bias'"),
                                     HasSubstr("inf at element 1 of 2")));
  parameters_.values(*model_.find_parameter("conv.weight"))[5] = std::nanf("");
  write([](TensorView&) {});
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("weights.safetensors"), HasSubstr("'conv.weight'"),
                                     HasSubstr("nan at element 5 of 6")));
  auto loaded = kernels::Parameters::initialized(model_, 2).value();
  EXPECT_TRUE(load_weights(files_, file_, loaded, {.layout = {}, .fresh = {"conv.weight"}}).ok())
      << "what is not taken may be anything";
  parameters_.values(*model_.find_parameter("conv.weight"))[5] = -1;
  parameters_.values(*model_.find_parameter("bn.running_mean"))[1] = -1;
  parameters_.values(*model_.find_parameter("bn.running_var"))[2] = -0.25f;
  write([](TensorView&) {});
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("'bn.running_var' is -0.25 at element 2 of 3"),
                                     HasSubstr("variance")));
}

TEST_F(Weights, that_torch_save_wrote_are_told_from_damaged_ones) {
  for (const char* begin : {"PK\x03\x04 zip", "\x80\x02 pickle"}) {
    auto file = files_.create("/model.pt").value();
    const std::string_view text = begin;
    ASSERT_TRUE(file->write(std::as_bytes(std::span(text))).ok());
    ASSERT_TRUE(file->close().ok());
    auto loaded = kernels::Parameters::initialized(model_, 2).value();
    const auto result = load_weights(files_, "/model.pt", loaded);
    ASSERT_EQ(result.code(), Code::invalid_argument);
    EXPECT_THAT(result.error().message, HasSubstr("safetensors.torch.save_file"));
    ASSERT_TRUE(files_.remove("/model.pt").ok());
  }
}

TEST_F(Weights, that_are_missing_or_of_another_shape_or_type_are_named) {
  write([](TensorView& tensor) {
    if (tensor.name == "bn.running_var") tensor.name.clear();
  });
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("weights.safetensors"), HasSubstr("not there"),
                                     HasSubstr("'bn.running_var'"), HasSubstr("[3]")));
  write([](TensorView& tensor) {
    if (tensor.name == "conv.weight") tensor.shape = {2, 3, 1, 1};
  });
  EXPECT_THAT(error_of_load(),
              AllOf(HasSubstr("'conv.weight' is [2, 3, 1, 1]"), HasSubstr("[3, 2, 1, 1]")));
  write([](TensorView& tensor) {
    if (tensor.name == "fc.bias") tensor.dtype = "I32";
  });
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("'fc.bias'"), HasSubstr("type I32")));
}

TEST_F(Weights, that_are_truncated_or_not_there_are_named_with_a_remedy) {
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("weights.safetensors"), HasSubstr("model.weights")));
  ASSERT_TRUE(save_weights(files_, file_, parameters_, 17).ok());
  const std::string whole = files_.contents().at(file_.native());
  for (std::size_t size = 0; size < whole.size(); size += whole.size() / 50) {
    files_.put(file_, whole.substr(0, size));
    ASSERT_THAT(error_of_load(), AllOf(HasSubstr("weights.safetensors"), HasSubstr("copy it again"),
                                       HasSubstr("corrupt_data")))
        << size;
  }
}

TEST_F(Weights, of_a_head_for_other_classes_may_be_left_out) {
  write([](TensorView& tensor) {
    if (tensor.name == "fc.bias") tensor.name.clear();
    if (tensor.name == "fc.weight") std::swap(tensor.shape[0], tensor.shape[1]);
  });
  options_.fresh = {"fc.bias"};
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("'fc.weight'"), HasSubstr("model.fresh")));
  options_.fresh = {"fc.bias", "fc.weight"};
  auto loaded = kernels::Parameters::initialized(model_, 2).value();
  const auto before = loaded.clone().value();
  ASSERT_TRUE(load_weights(files_, file_, loaded, options_).ok());
  for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
    const bool head = model_.parameters()[i].name.starts_with("fc.");
    EXPECT_TRUE(
        std::ranges::equal(loaded.values(i), head ? before.values(i) : parameters_.values(i)));
  }
  options_.fresh = {"fc"};
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("model.fresh"), HasSubstr("'fc'")));
}

TEST_F(Weights, of_two_files_have_the_same_hash_if_the_files_are_the_same) {
  const auto hash = [&](std::uint64_t steps) {
    EXPECT_TRUE(save_weights(files_, file_, parameters_, steps).ok());
    auto loaded = kernels::Parameters::initialized(model_, 2).value();
    return load_weights(files_, file_, loaded).value().content_hash;
  };
  EXPECT_EQ(hash(17).size(), 32u);
  EXPECT_EQ(hash(17), hash(17));
  EXPECT_NE(hash(17), hash(18));
}

}  // namespace
}  // namespace troupe::train
