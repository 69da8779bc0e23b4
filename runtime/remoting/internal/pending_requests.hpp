#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <caf/actor_control_block.hpp>
#include <caf/message_id.hpp>

#include "runtime/base/mutex.hpp"

namespace troupe::remoting {

class Route;

/// Requests that left for another node and have no response yet: when that node is lost, whoever
/// asked gets an error.
///
/// A request of a third node that was handed on to a fourth is kept too, but its response does not
/// come past here: of those the latest few thousand are kept. One whose time ran out stays until
/// its actor ends.
///
/// Threads: any. Takes memory only to grow.
class PendingRequests {
public:
  struct Request {
    caf::weak_actor_ptr sender;
    caf::message_id id;
    const Route* route = nullptr;
  };

  /// `sender` lives here.
  void add(const caf::strong_actor_ptr& sender, caf::message_id id, const Route* route);
  /// `sender` is a proxy.
  void add_foreign(const caf::strong_actor_ptr& sender, caf::message_id id, const Route* route);

  /// The response for the actor `sender` (of this node) is here, or the request did not leave after
  /// all. False if it was not pending.
  bool remove(caf::actor_id sender, caf::message_id id);

  /// Takes out what waits for `route`, or everything if that is null.
  std::vector<Request> take(const Route* route);

  std::size_t size() const;

private:
  struct Slot {
    std::uint64_t actor = 0;  ///< 0: free
    Request request;
  };

  static constexpr std::size_t kMaxForeign = 4096;

  std::size_t home(std::uint64_t actor, caf::message_id id) const TROUPE_REQUIRES(mutex_);
  void insert(Slot slot) TROUPE_REQUIRES(mutex_);
  void grow() TROUPE_REQUIRES(mutex_);
  void erase(std::size_t hole) TROUPE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  /// Open addressing, at most half full; erased by moving what follows back.
  std::vector<Slot> slots_ TROUPE_GUARDED_BY(mutex_);
  std::size_t used_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::deque<Request> foreign_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::remoting
