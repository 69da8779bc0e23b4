#include "actors/data/image_folder.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <fmt/format.h>

#include "actors/data/internal/content_hash.hpp"
#include "actors/data/internal/file.hpp"
#include "actors/data/internal/folder.hpp"
#include "actors/data/internal/image_sample.hpp"

namespace troupe::train {
namespace {

using std::filesystem::path;

constexpr std::size_t kHashedFiles = 1024;
constexpr std::uint64_t kHashedBytes = std::uint64_t{1} << 20;  // of one file

/// Names in a folder without those that begin with a dot.
Result<std::vector<std::string>> list(const path& folder) {
  TROUPE_ASSIGN(auto names, internal::list_folder(folder));
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  return names;
}

Status check_folder(const path& name) {
  std::error_code error;
  if (std::filesystem::is_directory(name, error)) return {};
  return {Code::corrupt_data,
          fmt::format("{} is not a folder, but here is one for each class; move it away",
                      name.native())};
}

/// What has no size, by `error`.
Error wrong_file(const path& name, const std::error_code& error) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(name, unknown) && !unknown)
    return {Code::corrupt_data,
            fmt::format("{} is not a file, but here are a class's images; move it away",
                        name.native())};
  return internal::system_error("look at", name, error.value());
}

bool is_picture(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.ends_with(".jpg") || name.ends_with(".jpeg") || name.ends_with(".png");
}

Result<std::vector<std::byte>> read_picture(const path& name) {
  TROUPE_ASSIGN(const auto file, internal::File::open(name));
  if (file->size() > internal::kMostImageBytes)
    return Error{Code::corrupt_data,
                 fmt::format("{} has {} bytes, but an image has at most {}; replace it",
                             name.native(), file->size(), internal::kMostImageBytes)};
  std::vector<std::byte> bytes(static_cast<std::size_t>(file->size()));
  TROUPE_TRY(file->read_exactly(0, bytes));
  return bytes;
}

}  // namespace

ImageFolder::ImageFolder(path folder, const PictureOptions& options)
    : folder_(std::move(folder)),
      options_(options),
      layout_{kernels::DType::u8, {3, options.size, options.size}, {}} {}

path ImageFolder::path_of(const Entry& entry) const {
  return folder_ / classes_[entry.label] / entry.name;
}

Result<std::unique_ptr<ImageFolder>> ImageFolder::open(const path& folder,
                                                       const PictureOptions& options) {
  TROUPE_ASSIGN(const auto names, list(folder));
  if (names.empty())
    return Error{Code::corrupt_data,
                 fmt::format("{} is empty; name a folder that has a folder of images for each "
                             "class",
                             folder.native())};
  for (const auto& name : names) TROUPE_TRY(check_folder(folder / name));
  if (names.size() > options.classes)
    return Error{Code::corrupt_data,
                 fmt::format("{} has {} classes, the folder {} is one too many; set model.classes",
                             folder.native(), names.size(), names[options.classes])};
  std::unique_ptr<ImageFolder> set(new ImageFolder(folder, options));
  for (const auto& name : names) TROUPE_TRY(set->add_class(name));
  TROUPE_TRY(set->hash());
  return set;
}

Status ImageFolder::add_class(const std::string& name) {
  const path folder = folder_ / name;
  TROUPE_ASSIGN(auto names, list(folder));
  if (names.empty())
    return {Code::corrupt_data,
            fmt::format("{} has no images; remove the folder or fetch it again", folder.native())};
  const auto label = static_cast<std::uint32_t>(classes_.size());
  for (auto& file : names) {
    if (!is_picture(file))
      return {Code::corrupt_data, fmt::format("{} is not called .jpg, .jpeg or .png; move it away",
                                              (folder / file).native())};
    files_.push_back({std::move(file), label});
  }
  classes_.push_back(name);
  return {};
}

Status ImageFolder::hash() {
  internal::ContentHash hash;
  for (const auto& name : classes_) hash.add(std::string_view(name));
  const std::size_t distance = (files_.size() + kHashedFiles - 1) / kHashedFiles;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const path name = path_of(files_[i]);
    std::error_code error;
    const auto size = std::filesystem::file_size(name, error);
    if (error) return wrong_file(name, error);
    hash.add(std::uint64_t{files_[i].label});
    hash.add(std::string_view(files_[i].name));
    hash.add(std::uint64_t{size});
    // An empty file is a bad sample, not the end of the job.
    if (i % distance != 0 || size == 0) continue;
    TROUPE_ASSIGN(const auto file, internal::File::open(name));
    TROUPE_TRY(hash.add_sampled(*file, kHashedBytes));
  }
  content_hash_ = hash.hex();
  return {};
}

Status ImageFolder::read(std::uint64_t index, Use use, std::span<std::byte> input,
                         std::span<std::byte> labels) const {
  TROUPE_CHECK(index < count(), fmt::format("sample {} of {}", index, count()));
  const Entry& entry = files_[index];
  const path name = path_of(entry);
  const auto label = static_cast<std::int32_t>(entry.label);
  std::memcpy(labels.data(), &label, sizeof(label));
  TROUPE_ASSIGN(const auto bytes, read_picture(name));
  return internal::make_image_sample(bytes, name.native(), index, use,
                                     {options_.size, options_.crop_and_flip, options_.seed}, input);
}

}  // namespace troupe::train
