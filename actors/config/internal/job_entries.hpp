#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "runtime/base/status.hpp"

namespace troupe::train::internal {

/// A value that was written somewhere, before it is known whether there is such a key.
struct Entry {
  std::string key;
  const toml::node* node = nullptr;
  std::string where;  ///< "mnist.toml:3:7", or the override
  toml::source_position at = {};
  bool from_override = false;
};

/// `invalid_argument` that begins with the place.
Error wrong(std::string_view where, std::string_view what);
/// That there is no such key, and which was meant.
Error unknown_key(const Entry& entry);
/// That the value is of another type than `wanted`, or out of its range.
Error wrong_type(const Entry& entry, std::string_view wanted);

/// `source` is what errors call the text.
Result<toml::table> parse_toml(std::string_view text, std::string_view source);

/// Every value of a job's table, in the order of the text so that the first mistake is reported
/// first. The entries point into `table`.
std::vector<Entry> read_entries(const toml::table& table, std::string_view source);

/// Appends the overrides ("key=value") as entries; `tables` keeps what they point to.
Status read_overrides(const std::vector<std::string>& overrides, std::deque<toml::table>& tables,
                      std::vector<Entry>& entries);

}  // namespace troupe::train::internal
