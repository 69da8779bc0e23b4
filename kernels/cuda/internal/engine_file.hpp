#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.hpp"

namespace troupe::kernels::cuda {

/// Which of the engines that cuDNN proposes is taken for an operation.
struct EngineChoice {
  std::int64_t position = 0;  ///< among those that are exact, in cuDNN's order
  std::int64_t engine = 0;  ///< cuDNN's number for it: that the list is the one it was chosen from
  bool operator==(const EngineChoice&) const = default;
};

/// A small text file of engines that were measured to be fastest: a line for each operation, of
/// what it is of (device, cuDNN's version, operation), the position and the engine, between tabs.
/// What a line is not, of another device or damaged, is left alone and not used.
///
/// What was in it when it was opened is what counts; add() is for the next time, and for this
/// process.
///
/// Threads: one at a time, any.
class EngineFile {
public:
  struct Options {
    std::string path;
    bool measures = false;  ///< operations that it does not have are measured, and added
  };
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  /// One that is not there is empty. Errors: `invalid_argument` for one above kMostBytes,
  /// `unavailable` if it cannot be read.
  static Result<EngineFile> open(Options options);
  /// What the text of such a file says.
  static std::map<std::string, EngineChoice, std::less<>> parse(std::string_view text);

  bool measures() const noexcept { return options_.measures; }
  /// A number of all that was in it, in hexadecimal digits: for telling two files apart.
  const std::string& fingerprint() const noexcept { return fingerprint_; }

  std::optional<EngineChoice> find(std::string_view key) const;
  /// Adds a line at the end. A key has no tabs or ends of lines. Errors: `unavailable` with the
  /// path.
  Status add(const std::string& key, const EngineChoice& choice);

private:
  explicit EngineFile(Options options) : options_(std::move(options)) {}

  Options options_;
  std::string fingerprint_;
  std::map<std::string, EngineChoice, std::less<>> choices_;
};

}  // namespace troupe::kernels::cuda
