#include "actors/checkpoint/checkpoint_store.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "actors/checkpoint/atomic_file.hpp"

namespace troupe::train {
namespace {

using std::filesystem::path;

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kExtension = ".safetensors";
constexpr std::string_view kFinalName = "final.safetensors";
constexpr const char* kStepKey = "troupe.step";

std::string file_name(std::uint64_t step) {
  return fmt::format("{}{:08}{}", kStepPrefix, step, kExtension);
}

std::optional<std::uint64_t> to_number(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// The step of a checkpoint's file name, nothing for any other file.
std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix) || !name.ends_with(kExtension) ||
      name.size() <= kStepPrefix.size() + kExtension.size())
    return std::nullopt;
  const auto step = to_number(
      name.substr(kStepPrefix.size(), name.size() - kStepPrefix.size() - kExtension.size()));
  if (!step || file_name(*step) != name) return std::nullopt;
  return step;
}

}  // namespace

CheckpointStore::CheckpointStore(path directory, std::uint32_t keep,
                                 std::shared_ptr<FileSystem> files)
    : directory_(std::move(directory)), keep_(std::max(1u, keep)), files_(std::move(files)) {}

Result<WrittenFile> CheckpointStore::save(std::uint64_t step, std::vector<TensorView> tensors,
                                          Metadata metadata) {
  metadata[kStepKey] = fmt::format("{}", step);
  TROUPE_TRY(files_->create_directory(directory_));
  TROUPE_TRY(remove_temporaries(*files_, directory_));
  TROUPE_ASSIGN(WrittenFile written, write_safetensors(*files_, directory_ / file_name(step),
                                                       std::move(tensors), metadata));
  TROUPE_TRY(prune(step));
  return written;
}

Result<WrittenFile> CheckpointStore::save_final(std::vector<TensorView> tensors,
                                                const Metadata& metadata) {
  TROUPE_TRY(files_->create_directory(directory_));
  TROUPE_TRY(remove_temporaries(*files_, directory_));
  return write_safetensors(*files_, directory_ / kFinalName, std::move(tensors), metadata);
}

Status CheckpointStore::check_writable(const std::string& who) {
  TROUPE_TRY(files_->create_directory(directory_));
  const path probe = directory_ / (".writable-" + who);
  TROUPE_ASSIGN(auto file, files_->create(probe));
  const Status written = file->close();
  const Status removed = files_->remove(probe);
  return written.ok() ? removed : written;
}

Result<std::vector<CheckpointStore::Entry>> CheckpointStore::list() const {
  auto names = files_->list(directory_);
  if (names.code() == Code::not_found) return std::vector<Entry>{};
  if (!names.ok()) return std::move(names).error();
  std::vector<Entry> entries;
  for (const auto& name : *names)
    if (const auto step = step_of(name)) entries.push_back({*step, directory_ / name});
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.step > b.step; });
  return entries;
}

Result<CheckpointStore::Found> CheckpointStore::load(const path& file) const {
  TROUPE_ASSIGN(TensorFile content, read_safetensors(*files_, file));
  const auto found = content.metadata.find(kStepKey);
  const auto step = found == content.metadata.end() ? std::nullopt : to_number(found->second);
  if (!step)
    return Error{Code::corrupt_data,
                 fmt::format("{} is no checkpoint: its metadata has no step", file.native())};
  const auto named = step_of(file.filename().native());
  if (named && *named != *step)
    return Error{Code::corrupt_data,
                 fmt::format("{} is of step {}; give it back its name", file.native(), *step)};
  return Found{{*step, file}, std::move(content), {}};
}

Result<CheckpointStore::Found> CheckpointStore::latest() const {
  TROUPE_ASSIGN(const auto entries, list());
  if (entries.empty())
    return Error{Code::not_found, fmt::format("there is no checkpoint in {}; start the job without "
                                              "resuming, or check checkpoint.directory",
                                              directory_.native())};
  std::vector<std::string> damaged;
  for (const Entry& entry : entries) {
    auto found = load(entry.path);
    if (found.ok()) {
      for (auto& sentence : damaged)
        sentence += fmt::format("; the one of step {} is used", entry.step);
      found->damaged = std::move(damaged);
      return found;
    }
    damaged.push_back(found.error().message);
  }
  return Error{
      Code::corrupt_data,
      fmt::format("none of the {} checkpoints in {} can be used ({}); start the job without "
                  "resuming",
                  entries.size(), directory_.native(), damaged.front())};
}

Status CheckpointStore::clear() {
  TROUPE_ASSIGN(const auto entries, list());
  for (const Entry& entry : entries) TROUPE_TRY(files_->remove(entry.path));
  const Status status = files_->remove(directory_ / kFinalName);
  if (!status.ok() && status.code() != Code::not_found) return status;
  if (entries.empty() && !status.ok()) return {};
  return files_->sync_directory(directory_);
}

Status CheckpointStore::prune(std::uint64_t step) {
  TROUPE_ASSIGN(const auto entries, list());
  std::uint32_t kept = 0;
  for (const Entry& entry : entries)
    if (entry.step <= step && ++kept > keep_) TROUPE_TRY(files_->remove(entry.path));
  return {};
}

}  // namespace troupe::train
