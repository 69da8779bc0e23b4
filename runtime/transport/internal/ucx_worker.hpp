#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/transport/internal/frame.hpp"
#include "runtime/transport/internal/ucx_context.hpp"

using ucp_worker_h = struct ucp_worker*;
using ucp_ep_h = struct ucp_ep*;
struct ucp_am_recv_param;

namespace troupe::transport {

/// A UCX worker with one endpoint: it serves a single peer.
///
/// One worker for all peers would be smaller, but UCX's shared-memory receive queue is one per
/// worker, and a sender that is killed while it writes an entry blocks that queue for everyone.
/// With its own worker a dead peer takes nothing along, and destroying the worker is the moment
/// from which UCX touches none of the peer's buffers.
///
/// Ownership: owned by its peer; the receiver is borrowed.
/// Threads:   the progress thread only.
/// Failure:   a broken endpoint is reported once by on_endpoint_failed().
class UcxWorker {
public:
  /// Takes what arrives; called from progress(). May not call back into the worker.
  class Receiver {
  public:
    virtual ~Receiver() = default;
    virtual void on_frame(const FrameHeader& header, std::span<const std::byte> frame) = 0;
    /// The whole part is here.
    virtual void on_part(const PartHeader& header, std::span<const std::byte> bytes) = 0;
    /// The part waits at the sender: receive() it later. False: it is not wanted.
    virtual bool on_part_offered(const PartHeader& header, std::size_t bytes, void* offer) = 0;
    virtual void on_garbage() = 0;
    virtual void on_endpoint_failed(std::string reason) = 0;
  };

  /// Something that UCX works on. Must live until completed() or the end of the worker.
  class Operation {
  public:
    virtual ~Operation() = default;
    virtual void completed(bool ok) = 0;
  };
  enum class Progress { done, pending, failed };

  static Result<std::unique_ptr<UcxWorker>> make(const UcxContext& context, Receiver& receiver);
  /// Cuts everything off. Operations still open are never completed, and may be freed after this.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  /// How the peer's endpoint finds this worker. Errors: `io_error`.
  Result<std::vector<std::byte>> address() const;
  int event_fd() const noexcept { return event_fd_; }
  Status connect(std::span<const std::byte> address);

  /// Moves what can move. True if anything did.
  bool progress();
  /// True if the event descriptor will tell of the next event; false: progress() first.
  bool arm();

  /// Header and bytes must stay until the operation ends. completed() is called for `pending` only.
  Progress send_frame(const FrameHeader& header, std::span<const std::byte> frame, Operation& op);
  Progress send_part(const PartHeader& header, std::span<const std::byte> bytes, Operation& op);
  Progress receive(void* offer, std::span<std::byte> into, Operation& op);

private:
  UcxWorker(ucp_worker_h worker, Receiver& receiver) : worker_(worker), receiver_(receiver) {}
  Status prepare();
  Status handle(unsigned id);
  Progress send(unsigned id, const void* header, std::size_t header_size,
                std::span<const std::byte> bytes, unsigned flags, Operation& op);
  void close_endpoint();

  static int on_frame(void* self, const void* header, std::size_t header_size, void* data,
                      std::size_t size, const ucp_am_recv_param* param);
  static int on_part(void* self, const void* header, std::size_t header_size, void* data,
                     std::size_t size, const ucp_am_recv_param* param);

  ucp_worker_h worker_;
  Receiver& receiver_;
  ucp_ep_h endpoint_ = nullptr;
  int event_fd_ = -1;
};

}  // namespace troupe::transport
