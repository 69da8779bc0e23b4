#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.hpp"

namespace troupe::transport {

/// Names the machine and the namespaces that processes must have in common to share memory.
std::string host_identity();

/// Copies `bytes` from `address` in `process`'s memory, with one copy and no help of that process.
/// Errors: `unavailable` if it is gone or does not let us.
Status read_process_memory(std::uint32_t process, std::uint64_t address, std::byte* to,
                           std::size_t bytes);

/// Whether a list as in UCX_TLS (empty: everything) lets memory of other processes be read.
bool tls_allows_memory_reads(std::string_view tls);

}  // namespace troupe::transport
