#include "kernels/cuda/internal/engine_file.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace troupe::kernels::cuda {

namespace {

constexpr std::int64_t kMostNumber = 1 << 20;

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostNumber)
    return std::nullopt;
  return value;
}

/// FNV-1a (Fowler, Noll, Vo).
std::uint64_t hash(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return sum;
}

/// What a line says: the key, and which engine.
std::optional<std::pair<std::string, EngineChoice>> parse_line(std::string_view line) {
  const std::size_t last = line.rfind('\t');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const std::size_t middle = line.rfind('\t', last - 1);
  if (middle == std::string_view::npos || middle == 0) return std::nullopt;
  const auto position = number(line.substr(middle + 1, last - middle - 1));
  const auto engine = number(line.substr(last + 1));
  const std::string_view key = line.substr(0, middle);
  if (!position || !engine || key.find('\t') != std::string_view::npos) return std::nullopt;
  return std::pair(std::string(key), EngineChoice{*position, *engine});
}

}  // namespace

std::map<std::string, EngineChoice, std::less<>> EngineFile::parse(std::string_view text) {
  std::map<std::string, EngineChoice, std::less<>> choices;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    // A line without its end was not written to its end.
    if (end == std::string_view::npos) break;
    // Of two lines for one operation the first counts.
    if (auto line = parse_line(text.substr(0, end))) choices.insert(std::move(*line));
    text.remove_prefix(end + 1);
  }
  return choices;
}

Result<EngineFile> EngineFile::open(Options options) {
  EngineFile file(std::move(options));
  const std::string& path = file.options_.path;
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  std::string text;
  if (!error) {
    if (bytes > kMostBytes)
      return Error{Code::invalid_argument,
                   fmt::format("the file of engines {} has {} bytes, more than the {} that such a "
                               "file may have; take another path, or delete it",
                               path, bytes, kMostBytes)};
    std::ifstream in(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
    if (!in)
      return Error{Code::unavailable, fmt::format("cannot read the file of engines {}", path)};
  } else if (error != std::errc::no_such_file_or_directory) {
    return Error{Code::unavailable,
                 fmt::format("cannot read the file of engines {}: {}", path, error.message())};
  }
  file.fingerprint_ = fmt::format("{:016x}", hash(text));
  file.choices_ = parse(text);
  return file;
}

std::optional<EngineChoice> EngineFile::find(std::string_view key) const {
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

Status EngineFile::add(const std::string& key, const EngineChoice& choice) {
  choices_.insert_or_assign(key, choice);
  std::ofstream out(options_.path, std::ios::binary | std::ios::app);
  // In one piece, so that two processes that add do not mix their lines. What comes before may have
  // been cut off.
  const std::string line = fmt::format("\n{}\t{}\t{}\n", key, choice.position, choice.engine);
  out.write(line.data(), static_cast<std::streamsize>(line.size()));
  out.flush();
  if (!out)
    return {Code::unavailable, fmt::format("cannot write the file of engines {}", options_.path)};
  return {};
}

}  // namespace troupe::kernels::cuda
