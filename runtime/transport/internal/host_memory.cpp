#include "runtime/transport/internal/host_memory.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>

namespace troupe::transport {

std::string host_identity() {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  for (const char* space : {"pid", "ipc", "net"}) {
    struct stat info {};
    const std::string path = fmt::format("/proc/self/ns/{}", space);
    identity += fmt::format(":{}", ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0);
  }
  return identity;
}

Status read_process_memory(std::uint32_t process, std::uint64_t address, std::byte* to,
                           std::size_t bytes) {
  while (bytes != 0) {
    const iovec local{to, bytes};
    const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: another's address
    const auto n = ::process_vm_readv(static_cast<pid_t>(process), &local, 1, &remote, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return Error{Code::unavailable, fmt::format("cannot read {} bytes from process {}: {}", bytes,
                                                  process, std::strerror(n < 0 ? errno : EFAULT))};
    to += n;
    address += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return {};
}

bool tls_allows_memory_reads(std::string_view tls) {
  if (tls.empty()) return true;
  const bool negated = tls.front() == '^';
  if (negated) tls.remove_prefix(1);
  bool named = false;
  while (!tls.empty()) {
    const auto comma = tls.find(',');
    const std::string_view name = tls.substr(0, comma);
    named |= name == "cma" || name == "sm" || name == "shm" || (!negated && name == "all");
    tls = comma == std::string_view::npos ? std::string_view{} : tls.substr(comma + 1);
  }
  return named != negated;
}

}  // namespace troupe::transport
