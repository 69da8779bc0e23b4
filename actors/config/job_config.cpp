#include "actors/config/job_config.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/sha.h>

#include "actors/config/internal/key_table.hpp"
#include "actors/config/job_keys.hpp"

namespace troupe::train {
namespace internal {
namespace {

std::string print(bool value) {
  return value ? "true" : "false";
}
std::string print(std::uint32_t value) {
  return fmt::format("{}", value);
}
std::string print(std::uint64_t value) {
  return fmt::format("{}", value);
}

/// The shortest text that reads back the same, with a point or an exponent so that it stays a
/// float.
std::string print(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string print(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\')
      text += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      text += c;
  }
  return text + '"';
}
std::string print(const std::string& value) {
  return print(std::string_view(value));
}
std::string print(const std::filesystem::path& value) {
  return print(value.native());
}
std::string print(const std::vector<std::uint32_t>& value) {
  return fmt::format("[{}]", fmt::join(value, ", "));
}
std::string print(const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  for (const std::string& value : values) texts.push_back(print(value));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

/// One number as it is, more of them as an array.
std::string print(const std::vector<double>& values) {
  if (values.size() == 1) return print(values[0]);
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(print(value));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string_view table_of(std::string_view key) {
  return key.substr(0, key.rfind('.'));
}

/// Tables and keys in the list's order; with `part` only those of it.
std::string print_all(const JobConfig& config, std::optional<Part> part) {
  std::string text;
  std::string_view table;
  for (const Key& key : keys()) {
    if (part && key.part != *part) continue;
    if (table_of(key.name) != table) {
      table = table_of(key.name);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table);
    }
    text += fmt::format("{} = {}\n", key.name.substr(table.size() + 1), print_value(key, config));
  }
  return text;
}

}  // namespace

std::string print_value(const Key& key, const JobConfig& config) {
  JobConfig copy = config;
  return std::visit([&copy](auto access) { return print(std::as_const(access(copy))); }, key.field);
}

}  // namespace internal

Status JobConfig::validate() const {
  for (const auto& key : internal::keys())
    if (auto problem = internal::check_range(key, *this))
      return {Code::invalid_argument, internal::to_sentence(*problem, *this)};
  if (auto problem = internal::check_together(*this))
    return {Code::invalid_argument, internal::to_sentence(*problem, *this)};
  return {};
}

std::string JobConfig::to_toml() const {
  return internal::print_all(*this, std::nullopt);
}

std::string JobConfig::results_hash() const {
  const std::string text = internal::print_all(*this, internal::Part::results);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string JobConfig::results_text() const {
  std::string text;
  for (const auto& key : internal::keys())
    if (key.part == internal::Part::results)
      text += fmt::format("{} = {}\n", key.name, internal::print_value(key, *this));
  return text;
}

std::vector<JobKeyInfo> job_keys() {
  const JobConfig defaults;
  std::vector<JobKeyInfo> list;
  for (const auto& key : internal::keys())
    list.push_back({key.name, internal::type_name(key),
                    key.required ? std::string{} : internal::print_value(key, defaults),
                    key.part == internal::Part::results});
  return list;
}

Status JobConfig::check_nodes(std::uint64_t most) const {
  if (most == 0 || most >= elastic.min_nodes) return {};
  return {Code::invalid_argument,
          fmt::format("the job may use {} node{} at most, but its elastic.min_nodes is {}; allow "
                      "more nodes or need fewer",
                      most, most == 1 ? "" : "s", elastic.min_nodes)};
}

}  // namespace troupe::train
