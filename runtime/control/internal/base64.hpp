#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.hpp"

namespace troupe::control {

/// RFC 4648, section 4, with padding.
std::string to_base64(std::string_view bytes);
/// Error: `corrupt_data` for anything that to_base64() would not give.
Result<std::string> from_base64(std::string_view text);

}  // namespace troupe::control
