#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include <caf/actor.hpp>

#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"

namespace troupe::remoting {

class Route;

/// Lookups and spawns that other nodes have not answered yet. Each is finished exactly once.
/// Threads: any. Nothing is called under the lock.
class Calls {
public:
  using Done = std::function<void(Result<caf::actor>)>;

  std::uint64_t begin(const Route* route, Done done);
  /// False if it is finished already, or was asked of another node than `route` (null: any).
  bool finish(std::uint64_t number, const Route* route, Result<caf::actor> result);
  /// Finishes what waits for `route` (null: everything).
  void fail(const Route* route, const Error& error);

private:
  struct Call {
    const Route* route;
    Done done;
  };
  mutable Mutex mutex_;
  std::uint64_t next_ TROUPE_GUARDED_BY(mutex_) = 1;
  std::unordered_map<std::uint64_t, Call> calls_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::remoting
