#include "runtime/base/status.hpp"

namespace troupe {

std::string_view to_string(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::not_found:
      return "not_found";
    case Code::already_exists:
      return "already_exists";
    case Code::unavailable:
      return "unavailable";
    case Code::deadline_exceeded:
      return "deadline_exceeded";
    case Code::cancelled:
      return "cancelled";
    case Code::corrupt_data:
      return "corrupt_data";
    case Code::io_error:
      return "io_error";
    case Code::resource_exhausted:
      return "resource_exhausted";
    case Code::permission_denied:
      return "permission_denied";
    case Code::version_mismatch:
      return "version_mismatch";
    case Code::protocol_error:
      return "protocol_error";
    case Code::address_in_use:
      return "address_in_use";
    case Code::failed_precondition:
      return "failed_precondition";
    case Code::stale_generation:
      return "stale_generation";
    case Code::shape_mismatch:
      return "shape_mismatch";
    case Code::not_supported:
      return "not_supported";
    case Code::internal:
      return "internal";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  std::string text = error.message;
  text += " (";
  text += to_string(error.code);
  text += ')';
  return text;
}

}  // namespace troupe
