#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"
#include "runtime/transport/internal/inbox.hpp"
#include "runtime/transport/internal/outbox.hpp"
#include "runtime/transport/internal/ucx_worker.hpp"

namespace troupe::transport {

/// Moves one peer's segments, both ways: in parts through UCX, or (same host) by reading them from
/// the other process's memory.
///
/// Ownership: holds an outgoing segment until UCX, or the peer that reads it, is done with it.
///            Worker, inbox and outbox are borrowed.
/// Threads:   the progress thread only.
/// Failure:   each step returns what went wrong; the peer is to be closed then.
class PeerSegments {
public:
  PeerSegments(UcxWorker& worker, Inbox& inbox, Outbox& outbox, std::uint32_t peer_process);
  ~PeerSegments();

  /// What the peer wants to see in every part. Before anything is sent.
  void set_peer_session(std::uint64_t session) { peer_session_ = session; }

  void send(OutSegment segment);
  /// The peer has read a lent segment. Errors: `protocol_error` if it was not lent.
  Status released(std::uint64_t segment);
  bool has_lent() const noexcept { return !lent_.empty(); }
  /// Bytes received so far by reading and by parts, since the last call.
  std::size_t take_received() { return std::exchange(received_, 0); }

  /// True if the outbox got something to flush since the last call.
  bool take_wants_flush() { return std::exchange(wants_flush_, false); }

  Status on_part(const PartHeader& header, std::span<const std::byte> bytes);
  void on_part_offered(const PartHeader& header, std::size_t bytes, void* offer);
  void on_lent(std::uint64_t segment, std::uint64_t address, std::size_t size);

  /// Posts and reads what it can, a bounded amount. `moved` is set if anything was done.
  /// `alive` is asked before bytes read from the peer's memory are believed.
  Status work(const std::function<bool()>& alive, bool& moved);

  bool has_open_operations() const noexcept { return sends_open_ != 0 || receives_open_ != 0; }
  bool has_more_to_do() const noexcept { return !reads_.empty() || failed_; }

private:
  class SendOperation;
  class ReceiveOperation;
  struct Sending {
    OutSegment segment;
    std::size_t posted = 0;
    std::size_t open_parts = 0;
  };
  struct Offer {
    PartHeader header;
    std::size_t bytes = 0;
    void* handle = nullptr;
  };
  struct Read {
    std::uint64_t address = 0;
    std::size_t size = 0;
    std::size_t done = 0;
    std::byte* to = nullptr;
  };

  void post_parts(bool& moved);
  Status accept_offers(bool& moved);
  Status read_lent(const std::function<bool()>& alive, bool& moved);
  void part_sent(SendOperation& op, bool ok);
  void part_received(ReceiveOperation& op, bool ok);
  template <class Op>
  Op& fresh(std::vector<std::unique_ptr<Op>>& all, std::vector<Op*>& free);

  UcxWorker& worker_;
  Inbox& inbox_;
  Outbox& outbox_;
  std::uint64_t peer_session_ = 0;
  const std::uint32_t peer_process_;

  std::map<std::uint64_t, Sending> sending_;
  std::deque<std::uint64_t> to_post_;
  std::size_t bytes_in_flight_ = 0;
  std::map<std::uint64_t, Buffer> lent_;
  std::deque<Offer> offers_;
  std::map<std::uint64_t, Read> reads_;
  std::vector<std::pair<std::uint64_t, std::size_t>> arrived_;  ///< segment, bytes
  std::size_t sends_open_ = 0, receives_open_ = 0;
  std::size_t received_ = 0;
  bool failed_ = false;
  bool wants_flush_ = false;

  std::vector<std::unique_ptr<SendOperation>> sends_;
  std::vector<SendOperation*> free_sends_;
  std::vector<std::unique_ptr<ReceiveOperation>> receives_;
  std::vector<ReceiveOperation*> free_receives_;
};

}  // namespace troupe::transport
