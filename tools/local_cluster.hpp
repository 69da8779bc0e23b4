#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/status.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::tool {

/// Node processes on this machine, children of this one: `troupe node --head ...` each.
///
/// Ownership: the destructor ends what still runs (SIGTERM, then SIGKILL after two seconds).
/// Threads:   one.
class LocalCluster {
public:
  struct Options {
    transport::Address head;
    std::string token;  ///< passed by the environment, never on the command line
    std::size_t nodes = 2;
    std::uint32_t slots = 1;  ///< of each node
    bool shared_memory = true;
  };

  LocalCluster() = default;
  ~LocalCluster() { stop(); }
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  /// Starts the processes, besides those that are there. Children get no descriptor but 0, 1 and 2:
  /// UCX's sockets are not close-on-exec, and one kept open in a child would hide its parent's
  /// death. Errors: `io_error` with the system's reason.
  Status start(const Options& options);

  /// A child that ended already, as a sentence; ok if all run.
  Status check();

  /// Waits for all to end by themselves, at most `patience`, then ends the rest.
  void stop(std::chrono::milliseconds patience = std::chrono::seconds(2));

  const std::vector<pid_t>& processes() const { return pids_; }

private:
  std::vector<pid_t> pids_;
  std::size_t started_ = 0;
};

}  // namespace troupe::tool
