#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/base/status.hpp"

namespace troupe {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };
std::string_view to_string(LogLevel level) noexcept;
/// Error: `invalid_argument` with the text and the levels there are.
Result<LogLevel> parse_log_level(std::string_view text);

/// One key=value of a line.
struct LogField {
  template <class Number>
  requires std::is_arithmetic_v<Number> LogField(std::string_view k, Number number)
      : key(k), value(text_of(number)) {}
  LogField(std::string_view k, std::string_view text) : key(k), value(text) {}
  LogField(std::string_view k, const char* text) : key(k), value(text) {}
  LogField(std::string_view k, const std::string& text) : key(k), value(text) {}

  std::string key;
  std::string value;

private:
  static std::string text_of(bool x) { return x ? "true" : "false"; }
  static std::string text_of(double x);
  template <class Integer>
  static std::string text_of(Integer x) {
    return std::to_string(x);
  }
  static std::string text_of(float x) { return text_of(static_cast<double>(x)); }
};

/// Writes what happens, one line each, for people and for grep:
///
///     2026-03-01T10:15:30.123456Z info node-1 4711 joined generation=3 head=127.0.0.1:7000
///
/// that is time (UTC), level, node, thread, message, fields. A line break or control sign inside a
/// message or value is escaped, so that nobody who names things can forge a line.
///
/// There is no logger of the process: whoever runs a node makes one and passes it on. It is silent
/// until a level is chosen, as a library should be.
///
/// Threads:   any.
/// Failure:   what cannot be written is lost; logging never fails its caller.
class Log {
public:
  using WallClock = std::function<std::chrono::system_clock::time_point()>;
  struct Options {
    LogLevel level = LogLevel::off;
    std::string node = "node";
    std::string file;  ///< appended to; empty means `write`, and if that is empty too, stderr
    std::function<void(std::string_view line)> write;  ///< gets whole lines, one at a time
    WallClock clock = std::chrono::system_clock::now;
  };

  /// Errors: `io_error` if the file cannot be opened.
  static Result<Log> open(Options options);
  /// Writes nothing.
  Log();
  ~Log();
  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;

  /// To avoid making fields that nobody reads.
  bool enabled(LogLevel level) const noexcept;
  void set_level(LogLevel level) noexcept;

  using Fields = std::initializer_list<LogField>;
  void write(LogLevel level, std::string_view message, Fields fields = {});
  void debug(std::string_view message, Fields fields = {}) {
    write(LogLevel::debug, message, fields);
  }
  void info(std::string_view message, Fields fields = {}) {
    write(LogLevel::info, message, fields);
  }
  void warning(std::string_view message, Fields fields = {}) {
    write(LogLevel::warning, message, fields);
  }
  void error(std::string_view message, Fields fields = {}) {
    write(LogLevel::error, message, fields);
  }

private:
  struct State;
  explicit Log(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe
