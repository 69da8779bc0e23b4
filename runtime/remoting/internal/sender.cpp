#include "runtime/remoting/internal/sender.hpp"

#include <memory>

#include <caf/actor_registry.hpp>

namespace troupe::remoting {
namespace {

/// A thread gives back what one larger message took.
constexpr std::size_t kKeptScratchBytes = std::size_t{1} << 20;

SendBuffers& of_this_thread() {
  thread_local SendBuffers buffers;
  return buffers;
}

}  // namespace

void SendBuffers::export_actor(caf::actor_system& system, const caf::strong_actor_ptr& actor) {
  // Actor numbers are not used twice, and the registry forgets only those that ended.
  auto& slot = exported_[actor->id() % exported_.size()];
  if (slot == actor->id()) return;
  system.registry().put(actor->id(), actor);
  slot = actor->id();
}

SendLease::SendLease(NodeId owner) : buffers_(&of_this_thread()), fresh_(buffers_->leased_) {
  if (fresh_) buffers_ = std::make_unique<SendBuffers>().release();
  buffers_->leased_ = true;
  if (buffers_->owner_ != owner) {
    // Another runtime of this process: it may know other types, and numbers its own actors.
    buffers_->owner_ = owner;
    buffers_->writer = {};
    buffers_->exported_ = {};
  }
  buffers_->scratch.clear();
  buffers_->segments.clear();
}

SendLease::~SendLease() {
  buffers_->leased_ = false;
  buffers_->segments.clear();
  buffers_->scratch.trim(kKeptScratchBytes);
  if (fresh_) std::unique_ptr<SendBuffers>{buffers_}.reset();
}

caf::error write_message(caf::execution_unit& context, const caf::node_id& own,
                         SendBuffers& buffers, const caf::mailbox_element& what) {
  WireWriter sink{&context, buffers.scratch, buffers.segments};
  const bool foreign = what.sender != nullptr && what.sender->node() != own;
  std::uint8_t flags = (foreign ? kForeignSender : 0) | (what.stages.empty() ? 0 : kHasStages);
  if (auto error = sink(flags)) return error;
  if (foreign) {
    auto sender = what.sender;
    if (auto error = sink(sender)) return error;
  } else if (what.sender != nullptr) {
    buffers.export_actor(context.system(), what.sender);
  }
  if ((flags & kHasStages) != 0) {
    auto stages = what.stages;
    if (auto error = sink(stages)) return error;
  }
  return buffers.writer.write(context.system(), sink, what.content());
}

}  // namespace troupe::remoting
