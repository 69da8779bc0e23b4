#include "runtime/transport/version.hpp"

#include <ucp/api/ucp.h>

namespace troupe::transport {

std::string ucx_version() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(release);
}

}  // namespace troupe::transport
