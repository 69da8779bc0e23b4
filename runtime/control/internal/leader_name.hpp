#pragma once

#include <string>
#include <string_view>

#include "runtime/control/store.hpp"

namespace troupe::control {

/// Who this process is, as others read it: "head-1 (process 4711)".
std::string leader_name(const StoreOptions& options);

/// What someone else wrote as his name, short and without signs that would break a line. For an
/// empty one "an unnamed head".
std::string shown_name(std::string_view stored);

}  // namespace troupe::control
