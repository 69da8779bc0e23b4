#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/status.hpp"
#include "tools/client.hpp"

namespace troupe::tool {

/// A cluster of child processes that one may do anything to: a head with a control store in a file,
/// and nodes.
///
/// Ownership: the destructor ends them all. Threads: one at a time.
class ChaosCluster {
public:
  /// The store goes into `folder`.
  ChaosCluster(std::filesystem::path folder, NodeOptions options);
  ~ChaosCluster();
  ChaosCluster(const ChaosCluster&) = delete;
  ChaosCluster& operator=(const ChaosCluster&) = delete;

  /// Starts head and nodes, and joins them from this process, which has no slots.
  Result<Client> start(std::size_t nodes);

  Status add_node();
  Status start_head();
  void kill_head();

  pid_t head() const { return head_; }
  /// Those that were started and not sent away.
  const std::vector<pid_t>& nodes() const { return nodes_; }
  /// Sends a signal to a node. With `for_good` it is none of nodes() from then on.
  void signal(pid_t node, int number, bool for_good);

private:
  const std::filesystem::path folder_;
  NodeOptions options_;
  pid_t head_ = 0;
  std::vector<pid_t> nodes_;
  std::vector<pid_t> gone_;  ///< to be reaped
  std::size_t started_ = 0;
};

}  // namespace troupe::tool
