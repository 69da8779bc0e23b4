#include "actors/data/cifar.hpp"

#include <charconv>
#include <cstring>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "actors/data/internal/augment.hpp"
#include "actors/data/internal/content_hash.hpp"
#include "actors/data/internal/file.hpp"
#include "actors/data/internal/folder.hpp"

namespace troupe::train {
namespace {

using std::filesystem::path;

constexpr std::size_t kImageBytes = 3 * 32 * 32;
constexpr std::size_t kPadding = 4;
constexpr std::string_view kPartBegin = "data_batch_";
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 30;

std::size_t label_bytes(CifarKind kind) {
  return kind == CifarKind::cifar10 ? 1 : 2;
}
std::size_t record_bytes(CifarKind kind) {
  return label_bytes(kind) + kImageBytes;
}
/// The fine label of CIFAR-100 comes last.
std::uint32_t label_of(std::span<const std::byte> record, CifarKind kind) {
  return std::to_integer<std::uint32_t>(record[label_bytes(kind) - 1]);
}

/// That a file holds whole records, before memory is taken for them.
Status check_size(const internal::File& file, CifarKind kind) {
  const std::size_t record = record_bytes(kind);
  if (file.size() % record == 0) return {};
  return {Code::corrupt_data,
          fmt::format("{} has {} bytes, which is {} records of {} bytes and a part of one from "
                      "byte {} on; fetch the binary version again and check data.format",
                      file.path().native(), file.size(), file.size() / record, record,
                      file.size() / record * record)};
}

Status check_labels(std::span<const std::byte> records, const CifarOptions& options,
                    const path& file) {
  const std::size_t record = record_bytes(options.kind);
  for (std::size_t at = 0; at < records.size(); at += record)
    if (const auto label = label_of(records.subspan(at, record), options.kind);
        label >= options.classes)
      return {Code::corrupt_data,
              fmt::format("{} at byte {}: the label of record {} is {}, but the classes are 0 to "
                          "{}; check the file, data.format and model.classes",
                          file.native(), at, at / record, label, options.classes - 1)};
  return {};
}

bool is_part(const std::string& name, CifarKind kind, bool training) {
  if (kind == CifarKind::cifar100) return name == (training ? "train.bin" : "test.bin");
  if (!training) return name == "test_batch.bin";
  return name.starts_with(kPartBegin) && name.ends_with(".bin");
}

/// The first of the numbered parts before the last of `files` that is not among them; 0 for none.
std::uint64_t missing_part(const std::vector<path>& files) {
  std::set<std::uint64_t> numbers;
  for (const path& file : files) {
    const std::string stem = file.stem().native();
    const char* const digits = stem.data() + kPartBegin.size();
    const char* const stop = stem.data() + stem.size();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits, stop, number);
    if (error == std::errc() && end == stop && number > 0) numbers.insert(number);
  }
  for (std::uint64_t number = 1; number <= numbers.size(); ++number)
    if (!numbers.contains(number)) return number;
  return 0;
}

}  // namespace

Result<std::vector<path>> CifarDataset::find_files(const path& folder, CifarKind kind,
                                                   bool training) {
  std::vector<path> files;
  TROUPE_ASSIGN(const auto names, internal::list_folder(folder));
  for (const auto& name : names)
    if (is_part(name, kind, training)) files.push_back(folder / name);
  if (files.empty())
    return Error{Code::not_found,
                 fmt::format("{} has no {}; name the folder that the binary version of the data "
                             "set was unpacked to as data.directory",
                             folder.native(),
                             kind == CifarKind::cifar100 ? (training ? "train.bin" : "test.bin")
                             : training                  ? "data_batch_*.bin"
                                                         : "test_batch.bin")};
  if (const auto missing = kind == CifarKind::cifar10 && training ? missing_part(files) : 0)
    return Error{
        Code::not_found,
        fmt::format("{} has {}, but no {}{}.bin; unpack the binary version of the data set "
                    "again",
                    folder.native(), files.back().filename().native(), kPartBegin, missing)};
  return files;
}

Result<std::unique_ptr<CifarDataset>> CifarDataset::load(const std::vector<path>& names,
                                                         const CifarOptions& options) {
  std::vector<std::unique_ptr<internal::File>> files;
  std::uint64_t bytes = 0;
  for (const path& name : names) {
    TROUPE_ASSIGN(auto file, internal::File::open(name));
    TROUPE_TRY(check_size(*file, options.kind));
    bytes += file->size();
    if (bytes > kMostBytes)
      return Error{Code::resource_exhausted,
                   fmt::format("{} and the files before it have {} bytes, but at most {} may be "
                               "loaded",
                               name.native(), bytes, kMostBytes)};
    files.push_back(std::move(file));
  }
  if (bytes == 0) return Error{Code::invalid_argument, "no CIFAR files were named"};

  std::unique_ptr<CifarDataset> set(new CifarDataset(options));
  TROUPE_ASSIGN(set->records_, Buffer::allocate(static_cast<std::size_t>(bytes)));
  std::size_t begin = 0;
  for (const auto& file : files) {
    const auto records = set->records_.bytes().subspan(begin, file->size());
    TROUPE_TRY(file->read_exactly(0, records));
    TROUPE_TRY(check_labels(records, options, file->path()));
    begin += records.size();
  }
  set->count_ = bytes / record_bytes(options.kind);
  internal::ContentHash hash;
  hash.add(set->records_.bytes());
  set->content_hash_ = hash.hex();
  return set;
}

Status CifarDataset::read(std::uint64_t index, Use use, std::span<std::byte> input,
                          std::span<std::byte> labels) const {
  TROUPE_CHECK(index < count_, fmt::format("sample {} of {}", index, count_));
  const std::size_t bytes = record_bytes(options_.kind);
  const auto record = records_.bytes().subspan(index * bytes, bytes);
  const auto image = record.subspan(label_bytes(options_.kind));
  const auto label = static_cast<std::int32_t>(label_of(record, options_.kind));
  std::memcpy(labels.data(), &label, sizeof(label));
  if (use.training && options_.crop_and_flip) {
    auto random = internal::random_of(options_.seed, use.epoch, index);
    internal::crop_and_flip(image, {3, 32, 32}, kPadding, random, input);
  } else {
    std::memcpy(input.data(), image.data(), image.size());
  }
  return {};
}

}  // namespace troupe::train
