#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/mutex.hpp"
#include "runtime/control/store.hpp"

namespace troupe::control {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// An empty folder, removed at the end of scope.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-store-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
};

/// What a store calls when its lead is lost. Must outlive the store. Threads: any.
class LostRecorder {
public:
  Store::Lost callback() {
    return [this](const Error& why) {
      MutexLock lock(mutex_);
      errors_.push_back(why);
      changed_.notify_all();
    };
  }
  /// The first error, if it comes in time.
  std::optional<Error> wait(Duration timeout = seconds(20)) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mutex_);
    while (errors_.empty() && std::chrono::steady_clock::now() < until)
      changed_.wait_until(mutex_, until);
    if (errors_.empty()) return std::nullopt;
    return errors_.front();
  }
  std::size_t count() {
    MutexLock lock(mutex_);
    return errors_.size();
  }

private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Error> errors_ TROUPE_GUARDED_BY(mutex_);
};

inline std::unique_ptr<Store> open(const std::string& address, const std::string& leader = "test") {
  return open_store(address, {.leader = leader}).value();
}

}  // namespace troupe::control
