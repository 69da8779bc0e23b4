#include <fstream>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "actors/config/internal/job_entries.hpp"
#include "actors/config/internal/key_table.hpp"
#include "actors/config/job_config.hpp"

namespace troupe::train {
namespace {

using internal::Base;
using internal::Entry;
using internal::Key;
using internal::wrong;
using std::filesystem::path;

constexpr std::size_t kMaxJobBytes = std::size_t{1} << 20;

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

std::optional<double> number_of(const toml::node& node) {
  if (const auto integer = node.value_exact<std::int64_t>()) return static_cast<double>(*integer);
  return node.value_exact<double>();
}

/// A number, or an array of them.
bool read_numbers(const toml::node& node, std::vector<double>& out) {
  out.clear();
  const auto take = [&out](const toml::node& element) {
    const auto number = number_of(element);
    if (number) out.push_back(*number);
    return number.has_value();
  };
  const auto* array = node.as_array();
  if (array == nullptr) return take(node);
  for (const toml::node& element : *array)
    if (!take(element)) return false;
  return true;
}

bool read_strings(const toml::node& node, std::vector<std::string>& out) {
  out.clear();
  const auto* array = node.as_array();
  if (array == nullptr) return false;
  for (const toml::node& element : *array) {
    const auto value = element.value_exact<std::string>();
    if (!value || value->find('\0') != std::string::npos) return false;
    out.push_back(*value);
  }
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
    if (!value) return internal::wrong_type(entry, "true or false");
    out = *value;
  } else if constexpr (std::is_integral_v<T>) {
    if (!read_integer(node, key, out)) return internal::wrong_type(entry, integer_wanted(key));
  } else if constexpr (std::is_same_v<T, double>) {
    const auto number = number_of(node);
    if (!number) return internal::wrong_type(entry, "a number");
    out = *number;
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    if (!read_numbers(node, out))
      return internal::wrong_type(entry, "a number, or an array of one for each channel");
  } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
    const auto* array = node.as_array();
    if (array == nullptr)
      return internal::wrong_type(entry, "an array of integers, such as [128, 64]");
    out.resize(array->size());
    for (std::size_t i = 0; i < array->size(); ++i)
      if (!read_integer((*array)[i], key, out[i]))
        return internal::wrong_type(entry, fmt::format("an array, each {}", integer_wanted(key)));
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    if (!read_strings(node, out))
      return internal::wrong_type(entry, "an array of strings, such as [\"fc.weight\"]");
  } else {  // strings and paths
    const auto value = node.value_exact<std::string>();
    if (!value) return internal::wrong_type(entry, "a string, in quotes");
    if (value->find('\0') != std::string::npos)
      return internal::wrong_type(entry, "a string without \\u0000");
    out = T(*value);
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
    if (key == nullptr) return internal::unknown_key(entry);
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
  TROUPE_ASSIGN(const auto table, internal::parse_toml(text, options.source));
  std::vector<Entry> entries = internal::read_entries(table, options.source);
  std::deque<toml::table> override_tables;
  TROUPE_TRY(internal::read_overrides(overrides, override_tables, entries));

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
