// A model that PyTorch saved, and what PyTorch makes of two images: reference/resnet18.py wrote
// both.
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

class PyTorchsResNet : public testing::Test {
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

  const kernels::Model model_ =
      kernels::make_model("resnet18",
                          {.input = {3, 32, 32}, .classes = 10, .small_images = true, .width = 4})
          .value();
  const std::filesystem::path file_ =
      std::filesystem::path(TROUPE_PYTORCH_WEIGHTS) / "resnet18_weights.safetensors";
};

TEST_F(PyTorchsResNet, gives_the_logits_that_pytorch_gives) {
  const TensorFile expected = read("resnet18_logits.safetensors");
  auto images = kernels::Tensor::allocate(kernels::DType::f32, {2, 3, 32, 32}).value();
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

TEST_F(PyTorchsResNet, is_saved_with_the_names_and_types_and_values_that_pytorch_saved) {
  const TensorFile theirs = read("resnet18_weights.safetensors");
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

}  // namespace
}  // namespace troupe::train
