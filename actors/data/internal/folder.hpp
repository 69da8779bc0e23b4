#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"

namespace troupe::train::internal {

/// The names of what is in a folder, in the order of their bytes: the same on every machine.
/// Errors: `not_found`, `io_error`, naming the folder.
Result<std::vector<std::string>> list_folder(const std::filesystem::path& folder);

}  // namespace troupe::train::internal
