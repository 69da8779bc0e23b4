#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/node_id.hpp"

namespace troupe::cluster {

/// The machine and its namespaces: equal in two processes means that a process id of one names the
/// same process in the other.
std::string host_identity();

/// Knows when processes of this host end, before any connection to them says so.
///
/// Ownership: holds a file descriptor for each process that is watched.
/// Threads:   one at a time.
/// Failure:   a process that cannot be watched is not; other signs of its end remain.
class ProcessWatch {
public:
  ProcessWatch() = default;
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  void watch(NodeId node, std::uint32_t process);
  void forget(NodeId node);
  /// Those whose process has ended since the last call; they are forgotten. Does not block.
  std::vector<NodeId> ended();

private:
  std::map<NodeId, int> descriptors_;
};

}  // namespace troupe::cluster
