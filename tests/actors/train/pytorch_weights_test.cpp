// Models that PyTorch saved, and what PyTorch makes of two images: reference/models.py wrote both.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "actors/train/weights.hpp"
#include "kernels/models.hpp"
#include "kernels/workspace.hpp"
#include "tests/actors/checkpoint/fake_file_system.hpp"

namespace troupe::train {
namespace {

constexpr double kTolerance = 1e-4;

struct Reference {
  const char* model;
  kernels::ModelConfig config;
};

class PyTorchsModel : public testing::TestWithParam<Reference> {
protected:
  static TensorFile read(const std::string& name) {
    PosixFileSystem files;
    return read_safetensors(files, std::string(TROUPE_PYTORCH_WEIGHTS) + "/" + name,
                            Checksum::if_present)
        .value();
  }
  kernels::Parameters load(FileSystem& files, const std::filesystem::path& file) const {
    auto parameters = kernels::Parameters::zeros(model_).value();
    const auto loaded = load_weights(files, file, parameters);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    return parameters;
  }

  const std::string name_ = GetParam().model;
  const kernels::Model model_ = kernels::make_model(name_, GetParam().config).value();
  const std::filesystem::path file_ =
      std::filesystem::path(TROUPE_PYTORCH_WEIGHTS) / (name_ + "_weights.safetensors");
};

TEST_P(PyTorchsModel, gives_the_logits_that_pytorch_gives) {
  const TensorFile expected = read(name_ + "_logits.safetensors");
  auto images =
      kernels::Tensor::allocate(kernels::DType::f32, model_.input().with_first(2)).value();
  std::ranges::copy(expected.find("inputs")->bytes, images.bytes().begin());
  PosixFileSystem files;
  const auto parameters = load(files, file_);
  for (const int threads : {1, 2}) {
    auto workspace = kernels::Workspace::create(model_, {.threads = threads}).value();
    const auto logits = workspace.predict(parameters, images).value();
    for (const char* name : {"logits", "exact"}) {
      std::vector<float> theirs(20);
      std::memcpy(theirs.data(), expected.find(name)->bytes.data(), 20 * sizeof(float));
      for (std::size_t i = 0; i < theirs.size(); ++i)
        EXPECT_NEAR(logits.data<float>()[i], theirs[i], kTolerance) << name << " " << i;
    }
  }
}

TEST_P(PyTorchsModel, is_saved_with_the_names_and_types_and_values_that_pytorch_saved) {
  const TensorFile theirs = read(name_ + "_weights.safetensors");
  PosixFileSystem files;
  const auto parameters = load(files, file_);
  FakeFileSystem disk;
  const std::uint64_t batches = 20;  // as many as PyTorch's model has seen
  ASSERT_TRUE(save_weights(disk, "/ours", parameters, batches).ok());
  const TensorFile ours = read_safetensors(disk, "/ours").value();
  ASSERT_EQ(ours.tensors.size(), theirs.tensors.size());
  for (const TensorView& tensor : theirs.tensors) {
    const TensorView* const mine = ours.find(tensor.name);
    ASSERT_NE(mine, nullptr) << tensor.name;
    EXPECT_EQ(mine->dtype, tensor.dtype) << tensor.name;
    EXPECT_EQ(mine->shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(mine->bytes, tensor.bytes)) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , PyTorchsModel,
    testing::Values(
        Reference{"resnet18",
                  {.input = {3, 32, 32}, .classes = 10, .small_images = true, .width = 4}},
        Reference{"vgg16_bn", {.input = {3, 64, 32}, .classes = 10, .width = 1}}),
    [](const auto& instance) { return std::string(instance.param.model); });

}  // namespace
}  // namespace troupe::train
