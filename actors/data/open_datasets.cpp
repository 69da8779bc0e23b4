#include "actors/data/open_datasets.hpp"

#include <fmt/format.h>

#include "actors/data/cifar.hpp"
#include "actors/data/idx_dataset.hpp"
#include "actors/data/image_folder.hpp"
#include "actors/data/tar_dataset.hpp"
#include "actors/data/tokens.hpp"

namespace troupe::train {
namespace {

using Opened = Result<std::unique_ptr<Dataset>>;

/// A pointer to the concrete set as one to a set.
template <class T>
Opened as_dataset(Result<std::unique_ptr<T>> opened) {
  TROUPE_ASSIGN(auto set, std::move(opened));
  return std::unique_ptr<Dataset>(std::move(set));
}

Opened open_idx(const JobConfig& config, bool training) {
  const DataConfig& data = config.data;
  return as_dataset(IdxDataset::load(
      data.directory / (training ? data.train_images : data.test_images),
      data.directory / (training ? data.train_labels : data.test_labels), config.model.classes));
}

Opened open_cifar(const JobConfig& config, bool training) {
  const DataConfig& data = config.data;
  CifarOptions options;
  options.kind = data.format == "cifar10" ? CifarKind::cifar10 : CifarKind::cifar100;
  options.classes = config.model.classes;
  options.crop_and_flip = data.augment == "crop_flip";
  options.seed = config.seed;
  TROUPE_ASSIGN(const auto files, CifarDataset::find_files(data.directory, options.kind, training));
  return as_dataset(CifarDataset::load(files, options));
}

Opened open_pictures(const JobConfig& config, bool training) {
  const DataConfig& data = config.data;
  const PictureOptions options{.classes = config.model.classes,
                               .size = data.image_size,
                               .crop_and_flip = data.augment == "crop_flip",
                               .seed = config.seed};
  const auto path = data.directory / (training ? data.train : data.test);
  if (data.format == "tar") return as_dataset(TarDataset::open(path, options));
  return as_dataset(ImageFolder::open(path, options));
}

Opened open_tokens(const JobConfig& config, bool training) {
  const DataConfig& data = config.data;
  const auto type = data.format == "text"      ? TokenType::byte
                    : data.token_type == "u16" ? TokenType::u16
                                               : TokenType::i32;
  return as_dataset(TokenDataset::open(
      data.directory / (training ? data.train : data.test),
      {.type = type, .tokens = data.tokens, .vocabulary = config.model.classes}));
}

Opened open_part(const JobConfig& config, bool training) {
  const std::string& format = config.data.format;
  if (format == "idx") return open_idx(config, training);
  if (format == "cifar10" || format == "cifar100") return open_cifar(config, training);
  if (format == "images" || format == "tar") return open_pictures(config, training);
  if (format == "tokens" || format == "text") return open_tokens(config, training);
  return Error{Code::not_supported, fmt::format("there is no data.format \"{}\"", format)};
}

std::string describe(const SampleLayout& layout) {
  return fmt::format("{} {} with labels {}", kernels::to_string(layout.dtype),
                     kernels::to_string(layout.input), kernels::to_string(layout.labels));
}

}  // namespace

Result<Datasets> open_datasets(const JobConfig& config) {
  Datasets sets;
  TROUPE_ASSIGN(sets.train, open_part(config, true));
  TROUPE_ASSIGN(sets.test, open_part(config, false));
  if (sets.train->layout() != sets.test->layout())
    return Error{Code::corrupt_data,
                 fmt::format("training samples are {} and test samples {}; both sets must be of "
                             "one layout",
                             describe(sets.train->layout()), describe(sets.test->layout()))};
  if (config.data.bad_samples == "skip") {
    auto train = std::make_unique<SkipBadSamples>(std::move(sets.train));
    auto test = std::make_unique<SkipBadSamples>(std::move(sets.test));
    sets.train_skips = train.get();
    sets.test_skips = test.get();
    sets.train = std::move(train);
    sets.test = std::move(test);
  }
  return sets;
}

}  // namespace troupe::train
