#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>

#include "runtime/base/node_id.hpp"
#include "runtime/remoting/internal/content.hpp"
#include "runtime/remoting/internal/wire.hpp"

namespace troupe::remoting {

/// What a thread keeps from one message it sends to the next, so that sending takes no memory.
/// Threads: one each, through lease().
class SendBuffers {
public:
  Scratch scratch;
  ContentWriter writer;
  std::vector<Buffer> segments;

  /// Makes the actor findable for answers, and thereby keeps it alive until it ends.
  void export_actor(caf::actor_system& system, const caf::strong_actor_ptr& actor);

private:
  friend class SendLease;
  NodeId owner_;
  bool leased_ = false;
  std::array<std::uint64_t, 64> exported_{};
};

/// This thread's SendBuffers for as long as one message is being written. A message that is sent
/// while another is being written gets fresh ones.
class SendLease {
public:
  explicit SendLease(NodeId owner);
  ~SendLease();
  SendLease(const SendLease&) = delete;
  SendLease& operator=(const SendLease&) = delete;

  SendBuffers* operator->() noexcept { return buffers_; }
  SendBuffers& operator*() noexcept { return *buffers_; }

private:
  SendBuffers* buffers_;
  bool fresh_;
};

/// Flags in front of a message's body.
inline constexpr std::uint8_t kForeignSender = 1;
inline constexpr std::uint8_t kHasStages = 2;

/// Writes the body of a message into `buffers`. Errors: what cannot travel.
caf::error write_message(caf::execution_unit& context, const caf::node_id& own,
                         SendBuffers& buffers, const caf::mailbox_element& what);

}  // namespace troupe::remoting
