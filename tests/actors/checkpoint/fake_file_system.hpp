#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "actors/checkpoint/file_system.hpp"

namespace troupe::train {

/// A disk in memory that may lose power: what was not synced is gone then. Any call can be made to
/// fail, alone or with all after it, as for a process that dies.
///
/// Threads: one.
class FakeFileSystem final : public FileSystem {
public:
  using Path = std::filesystem::path;

  /// Calls so far: numbers for fail_at() and die_at().
  std::uint64_t calls() const { return calls_; }
  /// The `n`-th call from now (from 0) fails once; writes leave half of their bytes.
  void fail_at(std::uint64_t n) { fail_at_ = calls_ + n; }
  /// The `n`-th call from now and all after it fail: the process died there.
  void die_at(std::uint64_t n) { die_at_ = calls_ + n; }

  /// Power is lost and comes back: only what was synced is there. Calls work again. With `lucky`,
  /// what was not synced made it to the disk all the same.
  void lose_power(bool lucky = false) {
    fail_at_ = die_at_ = kNever;
    if (lucky) return;
    names_ = synced_names_;
    for (auto& [name, file] : names_) file->content = file->synced;
  }

  /// Content of all files by name.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& [name, file] : names_) all[name] = file->content;
    return all;
  }
  void put(const Path& name, std::string content) {
    auto file = std::make_shared<File>();
    file->content = file->synced = std::move(content);
    names_[name.native()] = synced_names_[name.native()] = file;
  }

  Result<std::unique_ptr<WritableFile>> create(const Path& file) override {
    TROUPE_TRY(call("create", file));
    if (names_.contains(file.native())) return Error{Code::already_exists, file.native()};
    auto created = std::make_shared<File>();
    names_[file.native()] = created;
    return std::unique_ptr<WritableFile>(std::make_unique<Writer>(*this, created, file));
  }
  Result<Buffer> read(const Path& file) override {
    TROUPE_TRY(call("read", file));
    const auto found = names_.find(file.native());
    if (found == names_.end()) return Error{Code::not_found, file.native()};
    return Buffer::copy_of(std::as_bytes(std::span(found->second->content)));
  }
  Status rename(const Path& from, const Path& to) override {
    TROUPE_TRY(call("rename", from));
    auto moved = names_.extract(from.native());
    if (!moved) return {Code::not_found, from.native()};
    names_[to.native()] = moved.mapped();
    return {};
  }
  Status remove(const Path& file) override {
    TROUPE_TRY(call("remove", file));
    if (names_.erase(file.native()) == 0) return {Code::not_found, file.native()};
    return {};
  }
  Status create_directory(const Path& directory) override {
    TROUPE_TRY(call("create", directory));
    directories_.insert(directory.native());
    return {};
  }
  Status sync_directory(const Path& directory) override {
    TROUPE_TRY(call("sync", directory));
    std::erase_if(synced_names_,
                  [&](const auto& x) { return Path(x.first).parent_path() == directory; });
    for (const auto& x : names_)
      if (Path(x.first).parent_path() == directory) synced_names_.insert(x);
    return {};
  }
  Result<std::vector<std::string>> list(const Path& directory) override {
    TROUPE_TRY(call("list", directory));
    if (!directories_.contains(directory.native()))
      return Error{Code::not_found, directory.native()};
    std::vector<std::string> names;
    for (const auto& [name, file] : names_)
      if (Path(name).parent_path() == directory) names.push_back(Path(name).filename().native());
    return names;
  }

private:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  struct File {
    std::string content;
    std::string synced;
  };

  class Writer final : public WritableFile {
  public:
    Writer(FakeFileSystem& owner, std::shared_ptr<File> file, Path name)
        : owner_(owner), file_(std::move(file)), name_(std::move(name)) {}
    Status write(std::span<const std::byte> bytes) override {
      const Status status = owner_.call("write", name_);
      const std::size_t written = status.ok() ? bytes.size() : bytes.size() / 2;
      file_->content.append(reinterpret_cast<const char*>(bytes.data()), written);
      return status;
    }
    Status sync() override {
      TROUPE_TRY(owner_.call("sync", name_));
      file_->synced = file_->content;
      return {};
    }
    Status close() override { return owner_.call("close", name_); }

  private:
    FakeFileSystem& owner_;
    std::shared_ptr<File> file_;
    Path name_;
  };

  Status call(std::string_view what, const Path& file) {
    const std::uint64_t number = calls_++;
    if (number == fail_at_ || number >= die_at_)
      return {Code::io_error,
              fmt::format("cannot {} {}: No space left on device", what, file.native())};
    return {};
  }

  std::map<std::string, std::shared_ptr<File>> names_, synced_names_;
  std::set<std::string> directories_;
  std::uint64_t calls_ = 0;
  std::uint64_t fail_at_ = kNever;
  std::uint64_t die_at_ = kNever;
};

}  // namespace troupe::train
