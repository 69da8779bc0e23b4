#pragma once

#include <string>

namespace troupe::transport {

/// The version of UCX that is loaded: "1.13.1". Threads: any.
std::string ucx_version();

}  // namespace troupe::transport
