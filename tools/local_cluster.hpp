#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/status.hpp"
#include "runtime/cluster/runtime.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::tool {

/// Node processes on this machine, children of this one: `troupe node --head ...` each.
///
/// Ownership: the destructor ends what still runs (SIGTERM, then SIGKILL after two seconds).
/// Threads:   one.
class LocalCluster {
public:
  LocalCluster() = default;
  ~LocalCluster() { stop(); }
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  /// Starts the head in this process, which offers no slots and makes up a token if there is none,
  /// and `nodes` processes of `slots` each. The head is to end before this object: the nodes leave
  /// then. Errors: those of Runtime::start_cluster and of add().
  Result<std::unique_ptr<Runtime>> start(RuntimeOptions head, std::size_t nodes,
                                         std::uint32_t slots);

  /// Starts that many more. Children get no descriptor but 0, 1 and 2: UCX's sockets are not
  /// close-on-exec, and one kept open in a child would hide its parent's death. The token is passed
  /// by the environment, never on the command line. Errors: `io_error` with the system's reason.
  Status add(std::size_t nodes);

  /// Waits until all that were started are members, for half a minute. Errors: that one of them
  /// ended; `deadline_exceeded`; `cancelled` once `interrupted` is set.
  Status wait_for_nodes(Runtime& head, const std::atomic<bool>& interrupted);

  /// A child that ended already, as a sentence; ok if all run.
  Status check();

  /// Waits for all to end by themselves, at most `patience`, then ends the rest.
  void stop(std::chrono::milliseconds patience = std::chrono::seconds(2));

  const std::vector<pid_t>& processes() const { return pids_; }

private:
  transport::Address head_;
  std::string token_;
  std::uint32_t slots_ = 1;
  bool shared_memory_ = true;
  std::vector<pid_t> pids_;
  std::size_t started_ = 0;
};

}  // namespace troupe::tool
