#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/config/job_config.hpp"

namespace troupe::train::internal {

// The one list of keys: the parser, the printer, the hash and the manual's test are made from it.

template <class T>
using Access = T& (*)(JobConfig&);

/// Where a key's value is kept, and so which TOML type it has.
using Field = std::variant<Access<std::uint64_t>, Access<std::uint32_t>, Access<double>,
                           Access<bool>, Access<std::string>, Access<std::filesystem::path>,
                           Access<std::vector<std::uint32_t>>, Access<std::vector<double>>,
                           Access<std::vector<std::string>>>;

/// A key that decides the result, or one that does not.
enum class Part { results, operation };

/// What relative paths are relative to.
enum class Base { none, data_directory, job_folder, working_folder };

struct Key {
  std::string_view name;
  Field field;
  Part part = Part::results;
  bool required = false;
  // Bounds of integers (and of each of a list), both included.
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  // Bounds of numbers (and of each of a list), included unless said otherwise.
  double low = 0.0;
  bool above_low = false;
  double high = 1e9;
  bool below_high = false;
  std::span<const std::string_view> choices = {};
  Base base = Base::none;
};

std::span<const Key> keys();
const Key* find_key(std::string_view name);

/// "integer", "number", ... as the manual calls it.
std::string_view type_name(const Key& key);

/// The value as TOML.
std::string print_value(const Key& key, const JobConfig& config);

/// What is wrong with a configuration: the key to point at, and the rest of a sentence that begins
/// with "'key' is value".
struct Problem {
  std::string_view key;
  std::string what;
};

/// The key's own bounds and choices.
std::optional<Problem> check_range(const Key& key, const JobConfig& config);
/// Whether the model has a use for every key that is set, and all that it needs.
std::optional<Problem> check_model(const ModelConfig& model);
/// Whether the table [data] and its format fit each other.
std::optional<Problem> check_data(const JobConfig& config);
/// Whether the keys' values fit each other; the first that does not.
std::optional<Problem> check_together(const JobConfig& config);
/// Of these, the optimizer's and its schedule's.
std::optional<Problem> check_optimizer(const OptimizerConfig& optimizer);

/// "'key' is value" and the problem.
std::string to_sentence(const Problem& problem, const JobConfig& config);

/// The closest of the keys' names, empty if none is close: what was meant by a misspelt one.
std::string_view closest_key(std::string_view name);
/// The closest of `candidates` by edit distance, empty if none is close.
std::string_view closest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace troupe::train::internal
