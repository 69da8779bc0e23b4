#include "runtime/cluster/internal/process_watch.hpp"

#include <fstream>

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::cluster {

std::string host_identity() {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  for (const char* space : {"pid", "net"}) {
    struct stat info {};
    const std::string path = fmt::format("/proc/self/ns/{}", space);
    identity += fmt::format(":{}", ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0);
  }
  return identity;
}

ProcessWatch::~ProcessWatch() {
  for (const auto& [node, descriptor] : descriptors_) ::close(descriptor);
}

void ProcessWatch::watch(NodeId node, std::uint32_t process) {
  if (descriptors_.contains(node)) return;
  // glibc has no wrapper for it here yet. The descriptor is close-on-exec by itself.
  const long descriptor = ::syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0);
  if (descriptor >= 0) descriptors_[node] = static_cast<int>(descriptor);
}

void ProcessWatch::forget(NodeId node) {
  const auto it = descriptors_.find(node);
  if (it == descriptors_.end()) return;
  ::close(it->second);
  descriptors_.erase(it);
}

std::vector<NodeId> ProcessWatch::ended() {
  std::vector<pollfd> polled;
  for (const auto& [node, descriptor] : descriptors_) polled.push_back({descriptor, POLLIN, 0});
  std::vector<NodeId> ended;
  if (polled.empty() || ::poll(polled.data(), polled.size(), 0) <= 0) return ended;
  auto it = polled.begin();
  for (const auto& [node, descriptor] : descriptors_)
    if (((it++)->revents & POLLIN) != 0) ended.push_back(node);
  for (const NodeId node : ended) forget(node);
  return ended;
}

}  // namespace troupe::cluster
