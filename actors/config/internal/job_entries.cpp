#include "actors/config/internal/job_entries.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "actors/config/internal/key_table.hpp"

namespace troupe::train::internal {
namespace {

std::string where(std::string_view source, const toml::source_position& at) {
  return fmt::format("{}:{}:{}", source, at.line, at.column);
}

/// As TOML on one line, cut where it gets long.
std::string print(const toml::node& node) {
  // The shortest text of it, not toml++'s 17 digits.
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  std::ostringstream out;
  if (const auto* table = node.as_table())
    out << toml::toml_formatter{toml::table{*table}, toml::toml_formatter::default_flags};
  else
    node.visit([&out](const auto& value) { out << value; });
  std::string text = out.str();
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  constexpr std::size_t kShown = 60;
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a float";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

/// True for "optimizer" and "optimizer.schedule".
bool is_table_name(std::string_view name) {
  for (const Key& key : keys())
    if (key.name.size() > name.size() && key.name.starts_with(name) && key.name[name.size()] == '.')
      return true;
  return false;
}

/// Every value of the tables below `prefix`, by name.
void flatten(const toml::table& table, const std::string& prefix, std::string_view source,
             std::vector<Entry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const auto* inner = node.as_table();
    if (inner != nullptr && is_table_name(key))
      flatten(*inner, key + ".", source, entries);
    else if (inner != nullptr && !inner->empty() && find_key(key) == nullptr)
      flatten(*inner, key + ".", source, entries);
    else
      entries.push_back({key, &node, where(source, name.source().begin), name.source().begin});
  }
}

/// The value of an override: TOML, or else the bare text. Where a string is wanted, `name=3` means
/// the text too.
Result<toml::table> parse_override_value(const Key* key, std::string_view text,
                                         std::string_view where) {
  const bool wants_text =
      key != nullptr && (std::holds_alternative<Access<std::string>>(key->field) ||
                         std::holds_alternative<Access<std::filesystem::path>>(key->field));
  auto parsed = parse_toml(fmt::format("value = {}", text), where);
  const bool is_value =
      parsed.ok() && parsed->size() == 1 && (!wants_text || (*parsed)["value"].is_string());
  if (is_value) return parsed;
  return toml::table{{"value", std::string(text)}};
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

Error wrong(std::string_view where, std::string_view what) {
  return Error{Code::invalid_argument, fmt::format("{}: {}", where, what)};
}

Error unknown_key(const Entry& entry) {
  if (is_table_name(entry.key))
    return wrong(entry.where, fmt::format("'{0}' is {1}, but is a table; write [{0}] and its keys "
                                          "below it",
                                          entry.key, kind_of(*entry.node)));
  const auto meant = closest_key(entry.key);
  return wrong(entry.where, fmt::format("there is no key '{}' (its value is {}); {}", entry.key,
                                        print(*entry.node),
                                        meant.empty() ? "docs/job-file.md lists the keys, remove it"
                                                      : fmt::format("did you mean '{}'?", meant)));
}

constexpr std::ptrdiff_t kMaxDots = 1000;

Error wrong_type(const Entry& entry, std::string_view wanted) {
  const auto kind = kind_of(*entry.node);
  return wrong(entry.where,
               fmt::format("'{}' is {}{}, but must be {}", entry.key, print(*entry.node),
                           wanted.starts_with(kind) ? "" : fmt::format(" ({})", kind), wanted));
}

Result<toml::table> parse_toml(std::string_view text, std::string_view source) {
  // The parser calls itself for each part of a dotted key, and would run out of stack.
  for (std::size_t line = 1, begin = 0; begin < text.size(); ++line) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto dots = std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                 text.begin() + static_cast<std::ptrdiff_t>(end), '.');
    if (dots > kMaxDots)
      return wrong(fmt::format("{}:{}", source, line),
                   fmt::format("{} dots in one line; at most {}", dots, kMaxDots));
    begin = end + 1;
  }
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    return wrong(where(source, error.source().begin),
                 fmt::format("not TOML: {}", error.description()));
  }
}

std::vector<Entry> read_entries(const toml::table& table, std::string_view source) {
  std::vector<Entry> entries;
  flatten(table, "", source, entries);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  return entries;
}

Status read_overrides(const std::vector<std::string>& overrides, std::deque<toml::table>& tables,
                      std::vector<Entry>& entries) {
  for (const std::string& text : overrides) {
    const std::string where = fmt::format("override '{}'", text.substr(0, 200));
    const auto equals = text.find('=');
    const std::string key(trim(std::string_view(text).substr(0, equals)));
    if (equals == std::string::npos || key.empty())
      return wrong(where, "no key and value; write it as key=value, such as optimizer.lr=0.1");
    TROUPE_ASSIGN(auto table,
                  parse_override_value(find_key(key),
                                       trim(std::string_view(text).substr(equals + 1)), where));
    tables.push_back(std::move(table));
    entries.push_back({key, tables.back().get("value"), where, {}, true});
  }
  return {};
}

}  // namespace troupe::train::internal
