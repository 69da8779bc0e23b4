#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::train {

/// A key of the job file, for help texts and the manual.
struct JobKeyInfo {
  std::string_view key;   ///< "optimizer.lr"
  std::string_view type;  ///< "integer", "number", "boolean", "string", "path", "integers"...
  std::string fallback;   ///< as TOML; empty if the key is required
  bool changes_results = false;
};

/// All of them, in the order of JobConfig::to_toml().
std::vector<JobKeyInfo> job_keys();

}  // namespace troupe::train
