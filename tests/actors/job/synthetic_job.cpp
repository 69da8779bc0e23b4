#include "tests/actors/job/synthetic_job.hpp"

#include <cstdlib>
#include <fstream>
#include <random>

#include <unistd.h>

namespace troupe::train {
namespace {

constexpr std::uint32_t kSide = 8;
constexpr std::uint32_t kClasses = 4;

void put_u32(std::ofstream& out, std::uint32_t x) {
  for (int shift = 24; shift >= 0; shift -= 8) out.put(static_cast<char>(x >> shift));
}

void write_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
               std::uint32_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::ofstream image_file(images, std::ios::binary), label_file(labels, std::ios::binary);
  put_u32(image_file, 0x0803);
  for (auto n : {count, kSide, kSide}) put_u32(image_file, n);
  put_u32(label_file, 0x0801);
  put_u32(label_file, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t label = random() % kClasses;
    label_file.put(static_cast<char>(label));
    for (std::uint32_t pixel = 0; pixel < kSide * kSide; ++pixel) {
      const std::uint32_t bright = pixel % kClasses == label ? 128 : 0;
      image_file.put(static_cast<char>(bright + random() % 128));
    }
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

JobConfig synthetic_job(const std::filesystem::path& folder) {
  write_idx(folder / "train-images", folder / "train-labels", 640, 1);
  write_idx(folder / "test-images", folder / "test-labels", 100, 2);
  JobConfig config;
  config.name = "synthetic";
  config.ranks = 8;
  config.epochs = 2;
  config.model.name = "mlp";
  config.model.hidden = {32};
  config.model.classes = kClasses;
  config.data.directory = folder;
  config.data.train_images = "train-images";
  config.data.train_labels = "train-labels";
  config.data.test_images = "test-images";
  config.data.test_labels = "test-labels";
  config.data.batch = 64;
  config.optimizer.lr = 0.1;
  config.optimizer.momentum = 0.9;
  config.checkpoint.directory = folder / "checkpoints";
  config.checkpoint.every_steps = 4;
  config.operation.bucket_bytes = 4096;
  return config;
}

JobConfig synthetic_resnet_job(const std::filesystem::path& folder) {
  auto config = synthetic_job(folder);
  config.ranks = 4;
  config.epochs = 1;
  config.model.name = "resnet18";
  config.model.hidden = {};
  config.model.small_images = true;
  config.model.width = 16;
  config.data.batch = 32;
  config.optimizer.lr = 0.02;
  config.operation.bucket_bytes = 1 << 20;
  return config;
}

}  // namespace troupe::train
