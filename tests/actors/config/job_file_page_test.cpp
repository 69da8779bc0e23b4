#include <fstream>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/config/job_keys.hpp"

namespace troupe::train {
namespace {

TEST(JobFilePage, has_the_parsers_keys_types_and_defaults_in_its_order) {
  std::ifstream page(TROUPE_SOURCE_DIR "/docs/job-file.md");
  ASSERT_TRUE(page.is_open());
  // | `key` | type | `default` | result | meaning |
  const std::regex row(
      R"(\| `([a-z0-9_.]+)` \| (\w+) \| (`([^`]*)`|required) \| (yes|no) \| .+ \|)");
  std::vector<std::string> documented, parsed;
  std::smatch match;
  for (std::string line; std::getline(page, line);)
    if (std::regex_match(line, match, row))
      documented.push_back(match.str(1) + " " + match.str(2) + " " + match.str(4) + " " +
                           match.str(5));
  for (const JobKeyInfo& key : job_keys())
    parsed.push_back(std::string(key.key) + " " + std::string(key.type) + " " + key.fallback + " " +
                     (key.changes_results ? "yes" : "no"));
  EXPECT_THAT(documented, testing::ElementsAreArray(parsed));
}

}  // namespace
}  // namespace troupe::train
