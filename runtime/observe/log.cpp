#include "runtime/observe/log.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace troupe {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 5> kLevels{{
    {"debug", LogLevel::debug},
    {"info", LogLevel::info},
    {"warning", LogLevel::warning},
    {"error", LogLevel::error},
    {"off", LogLevel::off},
}};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

/// Appends `text` with what would break or move the line escaped.
void append_escaped(std::string& line, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
}

void append_value(std::string& line, std::string_view value) {
  if (!value.empty() && value.find_first_of(" \"=\\") == std::string_view::npos) {
    append_escaped(line, value);
    return;
  }
  std::string quoted;
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  line += '"';
  append_escaped(line, quoted);
  line += '"';
}

/// Hands finished lines to a function, under the sink's lock.
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  explicit FunctionSink(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_({line.data(), line.size()});
  }
  void flush_() override {}

  std::function<void(std::string_view)> write_;
};

Result<spdlog::sink_ptr> make_sink(const Log::Options& options) {
  if (options.file.empty()) {
    if (options.write) return spdlog::sink_ptr(std::make_shared<FunctionSink>(options.write));
    return spdlog::sink_ptr(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  }
  try {
    return spdlog::sink_ptr(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
  } catch (const spdlog::spdlog_ex& e) {
    return {Code::io_error, fmt::format("the log file '{}' cannot be opened ({}); choose another",
                                        options.file, e.what())};
  }
}

}  // namespace

std::string LogField::text_of(double x) {
  return fmt::format("{}", x);
}

std::string_view to_string(LogLevel level) noexcept {
  for (const auto& [name, value] : kLevels)
    if (value == level) return name;
  return "unknown";
}

Result<LogLevel> parse_log_level(std::string_view text) {
  for (const auto& [name, value] : kLevels)
    if (name == text) return value;
  return {Code::invalid_argument,
          fmt::format("'{}' is no log level; use debug, info, warning, error or off", text)};
}

struct Log::State {
  State(spdlog::sink_ptr sink, WallClock wall)
      : logger("", std::move(sink)), clock(std::move(wall)) {}
  spdlog::logger logger;  // of ours alone: spdlog's registry does not know it
  WallClock clock;
};

Result<Log> Log::open(Options options) {
  TROUPE_ASSIGN(auto sink, make_sink(options));
  std::string node;
  append_escaped(node, options.node);
  for (std::size_t at = 0; (at = node.find('%', at)) != std::string::npos; at += 2)
    node.insert(at, 1, '%');  // a sign of the pattern
  sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%fZ %l " + node + " %t %v", spdlog::pattern_time_type::utc));
  auto state = std::make_unique<State>(std::move(sink), std::move(options.clock));
  state->logger.flush_on(spdlog::level::debug);
  state->logger.set_level(to_spdlog(options.level));
  return Log(std::move(state));
}

Log::Log() = default;
Log::Log(std::unique_ptr<State> state) : state_(std::move(state)) {}
Log::~Log() = default;
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;

bool Log::enabled(LogLevel level) const noexcept {
  return state_ != nullptr && level != LogLevel::off && state_->logger.should_log(to_spdlog(level));
}

void Log::set_level(LogLevel level) noexcept {
  if (state_ != nullptr) state_->logger.set_level(to_spdlog(level));
}

void Log::write(LogLevel level, std::string_view message, Fields fields) {
  if (!enabled(level)) return;
  std::string line;
  append_escaped(line, message);
  for (const auto& field : fields) {
    line += ' ';
    append_escaped(line, field.key);
    line += '=';
    append_value(line, field.value);
  }
  state_->logger.log(state_->clock(), spdlog::source_loc{}, to_spdlog(level),
                     spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace troupe
