#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/config/internal/key_table.hpp"

namespace troupe::train::internal {
namespace {

std::optional<Problem> problem(std::string_view key, std::string what) {
  return Problem{key, std::move(what)};
}

std::optional<Problem> check_integer(const Key& key, std::uint64_t value) {
  if (value >= key.least && value <= key.most) return std::nullopt;
  if (key.most == static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return problem(key.name, fmt::format("but must be at least {}", key.least));
  return problem(key.name,
                 fmt::format("but must be an integer from {} to {}", key.least, key.most));
}

std::optional<Problem> check_number(const Key& key, double value) {
  const bool low_fits = key.above_low ? value > key.low : value >= key.low;
  const bool high_fits = key.below_high ? value < key.high : value <= key.high;
  if (low_fits && high_fits) return std::nullopt;  // not so for NaN
  return problem(key.name, fmt::format("but must be a number {} {} and {} {}",
                                       key.above_low ? "above" : "of at least", key.low,
                                       key.below_high ? "below" : "at most", key.high));
}

std::optional<Problem> check_text(const Key& key, const std::string& value) {
  if (key.choices.empty()) {
    if (!value.empty()) return std::nullopt;
    return problem(key.name, "but must not be empty");
  }
  if (std::find(key.choices.begin(), key.choices.end(), value) != key.choices.end())
    return std::nullopt;
  const auto meant = closest(value, key.choices);
  if (!meant.empty() && key.choices.size() > 1)
    return problem(key.name, fmt::format("but must be one of {}; did you mean \"{}\"?",
                                         fmt::join(key.choices, ", "), meant));
  return problem(key.name, fmt::format("but must be {}{}", key.choices.size() > 1 ? "one of " : "",
                                       fmt::join(key.choices, ", ")));
}

std::optional<Problem> check_integers(const Key& key, const std::vector<std::uint32_t>& values) {
  for (const std::uint32_t value : values)
    if (value < key.least || value > key.most)
      return problem(key.name, fmt::format("but each of its integers must be from {} to {}",
                                           key.least, key.most));
  if (values.size() > 64) return problem(key.name, "but must have at most 64 integers");
  return std::nullopt;
}

std::optional<Problem> check_numbers(const Key& key, const std::vector<double>& values) {
  if (values.empty() || values.size() > 64)
    return problem(key.name, "but must be one number, or one for each channel");
  for (const double value : values)
    if (auto found = check_number(key, value)) return found;
  return std::nullopt;
}

std::optional<Problem> check_texts(const Key& key, const std::vector<std::string>& values) {
  if (values.size() > 4096) return problem(key.name, "but must have at most 4096 strings");
  if (std::ranges::any_of(values, &std::string::empty))
    return problem(key.name, "but none of its strings may be empty");
  return std::nullopt;
}

bool is_file_name(const std::string& name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), fits);
}

}  // namespace

std::optional<Problem> check_range(const Key& key, const JobConfig& config) {
  JobConfig copy = config;
  return std::visit(
      [&](auto access) -> std::optional<Problem> {
        const auto& value = access(copy);
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          return std::nullopt;
        } else if constexpr (std::is_integral_v<T>) {
          return check_integer(key, value);
        } else if constexpr (std::is_same_v<T, double>) {
          return check_number(key, value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return check_text(key, value);
        } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
          return std::nullopt;  // check_data() says which are needed
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return check_numbers(key, value);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return check_texts(key, value);
        } else {
          return check_integers(key, value);
        }
      },
      key.field);
}

std::optional<Problem> check_together(const JobConfig& c) {
  if (!is_file_name(c.name))
    return problem(
        "job.name",
        "but must be letters, digits, '.', '_' and '-', at most 100, not '.' first: files "
        "are called by it");
  if (c.data.batch % c.ranks != 0) {
    const std::uint64_t down = c.data.batch / c.ranks * c.ranks;
    return problem("data.batch",
                   fmt::format("which the {} ranks cannot share equally; take {}", c.ranks,
                               down == 0 ? fmt::format("{}", c.ranks)
                                         : fmt::format("{} or {}", down, down + c.ranks)));
  }
  if (auto found = check_data(c)) return found;
  if (c.elastic.min_nodes > c.ranks)
    return problem(
        "elastic.min_nodes",
        fmt::format("but a job of {} ranks never uses more than {} nodes", c.ranks, c.ranks));
  if (c.elastic.max_nodes != 0 && c.elastic.max_nodes < c.elastic.min_nodes)
    return problem("elastic.max_nodes",
                   fmt::format("but must be at least elastic.min_nodes, which is {}, or 0",
                               c.elastic.min_nodes));
  for (const auto& [key, factor] :
       {std::pair{"elastic.straggler_factor", c.elastic.straggler_factor},
        std::pair{"elastic.drop_straggler_factor", c.elastic.drop_straggler_factor}})
    if (factor != 0 && factor < 1.5)
      return problem(key, "but nodes differ by that much without reason; take 1.5 or more, or 0");
  if (!c.data.drop_last)
    return problem(
        "data.drop_last",
        "but an epoch's incomplete last batch can only be left out so far; remove the key");
  if (auto found = check_model(c.model)) return found;
  if (c.checkpoint.final_layout == "gpt2" && c.model.name != "gpt")
    return problem("checkpoint.final_layout",
                   fmt::format("but a {} has no such layout; remove the key", c.model.name));
  return check_optimizer(c.optimizer);
}

std::string to_sentence(const Problem& problem, const JobConfig& config) {
  const Key* key = find_key(problem.key);
  return fmt::format("'{}' is {}, {}", problem.key, print_value(*key, config), problem.what);
}

}  // namespace troupe::train::internal
