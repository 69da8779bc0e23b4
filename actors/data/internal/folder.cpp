#include "actors/data/internal/folder.hpp"

#include <algorithm>

#include "actors/data/internal/file.hpp"

namespace troupe::train::internal {

Result<std::vector<std::string>> list_folder(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    names.push_back(entries->path().filename().native());
  if (error) return system_error("list", folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace troupe::train::internal
