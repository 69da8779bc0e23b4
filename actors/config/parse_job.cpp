#include <algorithm>
#include <deque>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "actors/config/internal/key_table.hpp"
#include "actors/config/job_config.hpp"

namespace troupe::train {
namespace {

using internal::Base;
using internal::Key;
using std::filesystem::path;

constexpr std::size_t kMaxJobBytes = std::size_t{1} << 20;

/// A value that was written somewhere, before it is known whether there is such a key.
struct Entry {
  std::string key;
  const toml::node* node = nullptr;
  std::string where;  ///< "mnist.toml:3:7", or the override
  toml::source_position at = {};
  bool from_override = false;
};

Error wrong(std::string_view where, std::string_view what) {
  return Error{Code::invalid_argument, fmt::format("{}: {}", where, what)};
}

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
  for (const Key& key : internal::keys())
    if (key.name.size() > name.size() && key.name.starts_with(name) && key.name[name.size()] == '.')
      return true;
  return false;
}

Result<toml::table> parse_toml(std::string_view text, std::string_view source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    return wrong(where(source, error.source().begin),
                 fmt::format("not TOML: {}", error.description()));
  }
}

/// Every value of the tables below `prefix`, by name.
void flatten(const toml::table& table, const std::string& prefix, std::string_view source,
             std::vector<Entry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const auto* inner = node.as_table();
    if (inner != nullptr && is_table_name(key))
      flatten(*inner, key + ".", source, entries);
    else if (inner != nullptr && !inner->empty() && internal::find_key(key) == nullptr)
      flatten(*inner, key + ".", source, entries);
    else
      entries.push_back({key, &node, where(source, name.source().begin), name.source().begin});
  }
}

Status unknown_key(const Entry& entry) {
  if (is_table_name(entry.key))
    return wrong(entry.where, fmt::format("'{0}' is {1}, but is a table; write [{0}] and its keys "
                                          "below it",
                                          entry.key, kind_of(*entry.node)));
  const auto meant = internal::closest_key(entry.key);
  return wrong(entry.where, fmt::format("there is no key '{}' (its value is {}); {}", entry.key,
                                        print(*entry.node),
                                        meant.empty() ? "docs/job-file.md lists the keys, remove it"
                                                      : fmt::format("did you mean '{}'?", meant)));
}

Status wrong_type(const Entry& entry, std::string_view wanted) {
  const auto kind = kind_of(*entry.node);
  return wrong(entry.where,
               fmt::format("'{}' is {}{}, but must be {}", entry.key, print(*entry.node),
                           wanted.starts_with(kind) ? "" : fmt::format(" ({})", kind), wanted));
}

/// An integer that fits T. Signed and range are checked here, for what T cannot hold.
template <class T>
bool read_integer(const toml::node& node, const Key& key, T& out) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 0 || static_cast<std::uint64_t>(*value) < key.least ||
      static_cast<std::uint64_t>(*value) > key.most)
    return false;
  out = static_cast<T>(*value);
  return true;
}

std::string integer_wanted(const Key& key) {
  if (key.most == static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return fmt::format("an integer of at least {}", key.least);
  return fmt::format("an integer from {} to {}", key.least, key.most);
}

template <class T>
Status read(const Entry& entry, const Key& key, T& out) {
  const toml::node& node = *entry.node;
  if constexpr (std::is_same_v<T, bool>) {
    const auto value = node.value_exact<bool>();
    if (!value) return wrong_type(entry, "true or false");
    out = *value;
  } else if constexpr (std::is_integral_v<T>) {
    if (!read_integer(node, key, out)) return wrong_type(entry, integer_wanted(key));
  } else if constexpr (std::is_same_v<T, double>) {
    const auto integer = node.value_exact<std::int64_t>();
    const auto number = node.value_exact<double>();
    if (!integer && !number) return wrong_type(entry, "a number");
    out = number ? *number : static_cast<double>(*integer);
  } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
    const auto* array = node.as_array();
    if (array == nullptr) return wrong_type(entry, "an array of integers, such as [128, 64]");
    out.resize(array->size());
    for (std::size_t i = 0; i < array->size(); ++i)
      if (!read_integer((*array)[i], key, out[i]))
        return wrong_type(entry, fmt::format("an array, each {}", integer_wanted(key)));
  } else {  // strings and paths
    const auto value = node.value_exact<std::string>();
    if (!value) return wrong_type(entry, "a string, in quotes");
    if (value->find('\0') != std::string::npos)
      return wrong_type(entry, "a string without \\u0000");
    out = T(*value);
  }
  return {};
}

/// The value of an override: TOML, or else the bare text. Where a string is wanted, `name=3` means
/// the text too.
Result<toml::table> parse_override_value(const Key* key, std::string_view text,
                                         std::string_view where) {
  const bool wants_text =
      key != nullptr && (std::holds_alternative<internal::Access<std::string>>(key->field) ||
                         std::holds_alternative<internal::Access<path>>(key->field));
  auto parsed = parse_toml(fmt::format("value = {}", text), where);
  const bool is_value =
      parsed.ok() && parsed->size() == 1 && (!wants_text || (*parsed)["value"].is_string());
  if (is_value) return parsed;
  return toml::table{{"value", std::string(text)}};
}

/// The overrides as entries; `tables` keeps what they point to.
Status read_overrides(const std::vector<std::string>& overrides, std::deque<toml::table>& tables,
                      std::vector<Entry>& entries) {
  for (const std::string& text : overrides) {
    const std::string where = fmt::format("override '{}'", text.substr(0, 200));
    const auto equals = text.find('=');
    const auto trim = [](std::string_view s) {
      const auto first = s.find_first_not_of(" \t");
      if (first == std::string_view::npos) return std::string_view{};
      return s.substr(first, s.find_last_not_of(" \t") - first + 1);
    };
    const std::string key(trim(std::string_view(text).substr(0, equals)));
    if (equals == std::string::npos || key.empty())
      return wrong(where, "no key and value; write it as key=value, such as optimizer.lr=0.1");
    TROUPE_ASSIGN(auto table,
                  parse_override_value(internal::find_key(key),
                                       trim(std::string_view(text).substr(equals + 1)), where));
    tables.push_back(std::move(table));
    entries.push_back({key, tables.back().get("value"), where, {}, true});
  }
  return {};
}

/// Takes the entries into the configuration one by one and remembers where each key was set.
struct Assembly {
  JobConfig config;
  std::vector<std::pair<std::string_view, std::string>> set_at;

  const std::string* where_set(std::string_view key) const {
    for (auto it = set_at.rbegin(); it != set_at.rend(); ++it)
      if (it->first == key) return &it->second;
    return nullptr;
  }

  Status take(const Entry& entry, const path& working_folder) {
    const Key* key = internal::find_key(entry.key);
    if (key == nullptr) return unknown_key(entry);
    TROUPE_TRY(
        std::visit([&](auto access) { return read(entry, *key, access(config)); }, key->field));
    if (auto problem = internal::check_range(*key, config))
      return wrong(entry.where, internal::to_sentence(*problem, config));
    if (entry.from_override && !working_folder.empty()) {
      if (const auto* access = std::get_if<internal::Access<path>>(&key->field)) {
        path& value = (*access)(config);
        if (!value.empty()) value = (working_folder / value).lexically_normal();
      }
    }
    set_at.emplace_back(key->name, entry.where);
    return {};
  }

  Status check_complete(std::string_view source) const {
    for (const Key& key : internal::keys())
      if (key.required && where_set(key.name) == nullptr)
        return wrong(source, fmt::format("the key '{}' is missing; add it under [{}]", key.name,
                                         key.name.substr(0, key.name.rfind('.'))));
    if (auto problem = internal::check_together(config)) {
      const std::string* at = where_set(problem->key);
      return wrong(at != nullptr ? std::string_view(*at) : source,
                   internal::to_sentence(*problem, config));
    }
    return {};
  }

  void resolve_paths(const ParseOptions& options) {
    if (config.checkpoint.directory.empty())
      config.checkpoint.directory = path("runs") / config.name;
    const auto resolve = [&](Base base, const path& folder) {
      for (const Key& key : internal::keys()) {
        const auto* access = std::get_if<internal::Access<path>>(&key.field);
        if (access == nullptr || key.base != base) continue;
        path& value = (*access)(config);
        if (!value.empty() && !folder.empty()) value = (folder / value).lexically_normal();
      }
    };
    resolve(Base::job_folder, options.folder);
    resolve(Base::data_directory, config.data.directory);
    resolve(Base::data_directory, options.folder);
    resolve(Base::working_folder, options.working_folder);
  }
};

}  // namespace

Result<JobConfig> parse_job(std::string_view text, const ParseOptions& options,
                            const std::vector<std::string>& overrides) {
  if (text.size() > kMaxJobBytes)
    return wrong(options.source, fmt::format("{} bytes are too long for a job; at most {}",
                                             text.size(), kMaxJobBytes));
  TROUPE_ASSIGN(const auto table, parse_toml(text, options.source));
  std::vector<Entry> entries;
  flatten(table, "", options.source, entries);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });  // so that the first mistake is reported first
  std::deque<toml::table> override_tables;
  TROUPE_TRY(read_overrides(overrides, override_tables, entries));

  Assembly assembly;
  for (const Entry& entry : entries) TROUPE_TRY(assembly.take(entry, options.working_folder));
  TROUPE_TRY(assembly.check_complete(options.source));
  assembly.resolve_paths(options);
  return std::move(assembly.config);
}

Result<JobConfig> load_job(const path& file, const std::vector<std::string>& overrides) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status))
    return Error{Code::not_found,
                 fmt::format("{}: no such job file; check its name", file.native())};
  if (!std::filesystem::is_regular_file(status))
    return Error{Code::invalid_argument,
                 fmt::format("{}: not a file; name a job file (TOML)", file.native())};
  std::ifstream in(file, std::ios::binary);
  std::string text(kMaxJobBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad())
    return Error{Code::io_error,
                 fmt::format("{}: cannot be read; check its permissions", file.native())};
  text.resize(static_cast<std::size_t>(in.gcount()));

  const path working_folder = std::filesystem::current_path(error);
  if (error)
    return Error{Code::io_error, fmt::format("the working folder is not there ({}); change to one "
                                             "that is",
                                             error.message())};
  return parse_job(text,
                   {.source = file.native(),
                    .folder = (working_folder / file).parent_path().lexically_normal(),
                    .working_folder = working_folder},
                   overrides);
}

}  // namespace troupe::train
