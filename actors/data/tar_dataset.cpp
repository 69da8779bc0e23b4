#include "actors/data/tar_dataset.hpp"

#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "actors/data/internal/content_hash.hpp"
#include "actors/data/internal/file.hpp"
#include "actors/data/internal/folder.hpp"
#include "actors/data/internal/image_sample.hpp"
#include "actors/data/internal/tar_reader.hpp"

namespace troupe::train {
namespace {

using std::filesystem::path;

constexpr std::uint64_t kMostClassBytes = 32;
constexpr std::uint64_t kHashedBytes = std::uint64_t{1} << 20;  // of one shard

Result<std::vector<path>> find_shards(const path& name) {
  std::error_code error;
  if (!std::filesystem::is_directory(name, error)) return std::vector<path>{name};
  std::vector<path> shards;
  TROUPE_ASSIGN(const auto names, internal::list_folder(name));
  for (const auto& shard : names)
    if (path(shard).extension() == ".tar") shards.push_back(name / shard);
  if (shards.empty())
    return Error{Code::not_found,
                 fmt::format("{} has no files *.tar; name the folder of the shards, or one of them",
                             name.native())};
  return shards;
}

/// WebDataset's key and extension: up to the first dot of the last part of the name, and after it.
std::pair<std::string_view, std::string_view> split(std::string_view name) {
  const auto slash = name.rfind('/');
  const auto dot = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  if (dot == std::string_view::npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

Error wrong_entry(const internal::File& file, const internal::TarEntry& entry,
                  std::string_view what) {
  return {Code::corrupt_data, fmt::format("{} at byte {}: {} {}", file.path().native(),
                                          entry.header, entry.name, what)};
}

/// The number in NAME.cls.
Result<std::uint32_t> read_class(const internal::File& file, const internal::TarEntry& entry,
                                 std::uint32_t classes) {
  if (entry.size > kMostClassBytes)
    return wrong_entry(
        file, entry,
        fmt::format("has {} bytes, but a class is a number; write the shard again", entry.size));
  std::string text(static_cast<std::size_t>(entry.size), '\0');
  TROUPE_TRY(file.read_exactly(entry.offset, std::as_writable_bytes(std::span(text))));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  std::uint32_t label = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (error != std::errc() || stop != text.data() + text.size())
    return wrong_entry(file, entry, "is not a decimal number; write the shard again");
  if (label >= classes)
    return wrong_entry(file, entry,
                       fmt::format("is {}, but the classes are 0 to {}; check the shard and "
                                   "model.classes",
                                   label, classes - 1));
  return label;
}

}  // namespace

struct TarDataset::Shards {
  std::vector<std::unique_ptr<internal::File>> files;
  internal::ContentHash hash;
};

TarDataset::TarDataset(const PictureOptions& options)
    : options_(options),
      layout_{kernels::DType::u8, {3, options.size, options.size}, {}},
      shards_(std::make_unique<Shards>()) {}
TarDataset::~TarDataset() = default;

Result<std::unique_ptr<TarDataset>> TarDataset::open(const path& name,
                                                     const PictureOptions& options) {
  TROUPE_ASSIGN(const auto shards, find_shards(name));
  std::unique_ptr<TarDataset> set(new TarDataset(options));
  for (const auto& shard : shards) TROUPE_TRY(set->scan(shard));
  if (set->samples_.empty())
    return Error{Code::corrupt_data,
                 fmt::format("{} has no entries NAME.jpg or NAME.png with a NAME.cls; name shards "
                             "in WebDataset's layout",
                             name.native())};
  set->content_hash_ = set->shards_->hash.hex();
  return set;
}

Status TarDataset::scan(const path& shard) {
  TROUPE_ASSIGN(auto file, internal::File::open(shard));
  auto& hash = shards_->hash;
  const auto number = static_cast<std::uint32_t>(shards_->files.size());
  internal::TarReader reader(*file);
  std::optional<internal::TarEntry> image, cls;  // of the sample whose entries are being read
  const auto finish = [&]() -> Status {
    if (image && !cls) return wrong_entry(*file, *image, "has no NAME.cls; write the shard again");
    if (cls && !image) return wrong_entry(*file, *cls, "has no image; write the shard again");
    if (!image) return {};
    if (image->size > internal::kMostImageBytes)
      return wrong_entry(*file, *image,
                         fmt::format("has {} bytes, but an image has at most {}; replace it",
                                     image->size, internal::kMostImageBytes));
    TROUPE_ASSIGN(const auto label, read_class(*file, *cls, options_.classes));
    samples_.push_back({image->offset, static_cast<std::uint32_t>(image->size), number, label});
    hash.add(std::string_view(image->name));
    hash.add(image->size);
    hash.add(std::uint64_t{label});
    image.reset();
    cls.reset();
    return {};
  };
  std::string key;
  for (;;) {
    TROUPE_ASSIGN(auto entry, reader.next());
    if (!entry) break;
    const std::string name = entry->name;
    const auto [stem, extension] = split(name);
    if (stem != key) TROUPE_TRY(finish());
    key = stem;
    const bool is_image = extension == "jpg" || extension == "jpeg" || extension == "png";
    if (!is_image && extension != "cls") continue;
    auto& place = is_image ? image : cls;
    if (place) return wrong_entry(*file, *entry, "is there twice; write the shard again");
    place = std::move(*entry);
  }
  TROUPE_TRY(finish());
  TROUPE_TRY(hash.add_sampled(*file, kHashedBytes));
  shards_->files.push_back(std::move(file));
  return {};
}

Status TarDataset::read(std::uint64_t index, Use use, std::span<std::byte> input,
                        std::span<std::byte> labels) const {
  TROUPE_CHECK(index < count(), fmt::format("sample {} of {}", index, count()));
  const Sample& sample = samples_[index];
  const auto& file = *shards_->files[sample.shard];
  const auto label = static_cast<std::int32_t>(sample.label);
  std::memcpy(labels.data(), &label, sizeof(label));
  std::vector<std::byte> bytes(sample.size);
  TROUPE_TRY(file.read_exactly(sample.offset, bytes));
  const auto name = fmt::format("{} at byte {}", file.path().native(), sample.offset);
  return internal::make_image_sample(bytes, name, index, use,
                                     {options_.size, options_.crop_and_flip, options_.seed}, input);
}

}  // namespace troupe::train
