#include "tools/exit_codes.hpp"

#include <cstdio>

namespace troupe::tool {

int exit_code(const Error& error) {
  switch (error.code) {
    case Code::invalid_argument:
    case Code::not_found:
    case Code::already_exists:
    case Code::corrupt_data:
    case Code::shape_mismatch:
    case Code::address_in_use:
    case Code::not_supported:
      return kBadInput;
    case Code::unavailable:
    case Code::stale_generation:
    case Code::deadline_exceeded:
    case Code::permission_denied:
    case Code::version_mismatch:
      return kUnavailable;
    case Code::cancelled:
      return kInterrupted;
    default:
      return kFailed;
  }
}

int fail(const Error& error) {
  std::fprintf(stderr, "troupe: %s\n", error.message.c_str());
  return exit_code(error);
}

}  // namespace troupe::tool
