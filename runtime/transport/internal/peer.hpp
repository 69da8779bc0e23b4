#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/transport/internal/control_channel.hpp"
#include "runtime/transport/internal/handshake.hpp"
#include "runtime/transport/internal/inbox.hpp"
#include "runtime/transport/internal/outbox.hpp"
#include "runtime/transport/internal/peer_segments.hpp"
#include "runtime/transport/internal/poller.hpp"
#include "runtime/transport/internal/ucx_worker.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::transport {

struct Counters {
  std::atomic<std::uint64_t> messages_received{0};
  std::atomic<std::uint64_t> frames_sent{0}, frames_received{0};
  std::atomic<std::uint64_t> bytes_sent{0}, bytes_received{0};
  std::atomic<std::uint64_t> sleeps{0};
};

class Peer;

/// What a peer needs of its transport. All calls on the progress thread.
class PeerHost {
public:
  virtual ~PeerHost() = default;
  virtual const Options& options() const = 0;
  virtual Greeting greeting() const = 0;
  virtual BufferPool& pool() = 0;
  virtual Poller& poller() = 0;
  virtual Counters& counters() = 0;
  virtual Result<UcxContext*> context(const UcxContext::Settings& settings) = 0;

  /// Calls the peer's check_deadline() then, if it is still there.
  virtual void check_deadline_later(const Peer& peer, TimePoint when) = 0;

  /// The handshake is done; gives the peer its number.
  virtual PeerId on_peer_connected(Peer& peer, const PeerInfo& info) = 0;
  virtual void on_peer_message(PeerId peer, Channel channel, std::span<const std::byte> bytes,
                               std::span<Buffer> segments) = 0;
  virtual void on_peer_lost(PeerId peer, const Error& reason) = 0;
};

/// One connection from its first byte to its last: the handshake over TCP, then frames and
/// segments over a UCX worker of its own, while the TCP connection stays open as the proof of life.
///
/// Ownership: owned by the transport until dead(). Buffers being sent are held until UCX or the
///            peer is done with them.
/// Threads:   the progress thread only; outbox() has its own rules.
/// Failure:   any failure ends in on_peer_lost (or `done` with the error, before the handshake was
///            done), once; then nothing more comes from this peer.
class Peer final : UcxWorker::Receiver, Inbox::Sink {
public:
  using Done = std::function<void(Result<PeerId>)>;

  /// `token`s mark this peer's descriptors in the poller: control, and one more for the worker.
  Peer(PeerHost& host, Dialed dialed, std::uint64_t token);                              // accepted
  Peer(PeerHost& host, Dialed dialed, std::uint64_t token, Address address, Done done);  // dialed
  ~Peer() override;

  void start(TimePoint now);
  void on_control_event(TimePoint now);
  /// Moves what can move. True if anything did.
  bool work(TimePoint now);
  /// True if the poller will tell of what comes next; call work() first otherwise.
  bool may_sleep();
  /// Operations are open whose end may not raise an event.
  bool has_open_operations() const;
  /// The outbox has something.
  void flush();
  /// Gives up what has taken too long.
  void check_deadline(TimePoint now);

  void close(Status reason, TimePoint now);
  /// Ends at once, without a word to the other side beyond `reason`.
  void abandon(const Error& reason);

  bool shaking() const noexcept { return stage_ < Stage::connected; }
  bool connected() const noexcept {
    return stage_ == Stage::connected || stage_ == Stage::draining;
  }
  bool dead() const noexcept { return stage_ == Stage::dead; }
  PeerId id() const noexcept { return id_; }
  const std::shared_ptr<Outbox>& outbox() const noexcept { return outbox_; }
  /// The number that the tokens were made of.
  std::uint64_t key() const noexcept { return token_ >> 1; }

  // For the loop: does it look after this peer without waiting for an event?
  bool active() const noexcept { return active_; }
  void set_active(bool active) { active_ = active; }
  void wake(TimePoint now) { last_activity_ = now; }
  TimePoint last_activity() const noexcept { return last_activity_; }

private:
  friend class FrameOperation;
  enum class Stage { dialing, shaking, connected, draining, lingering, dead };
  class FrameOperation;

  // UcxWorker::Receiver: from within progress(), so failures are only noted.
  void on_frame(const FrameHeader& header, std::span<const std::byte> frame) override;
  void on_part(const PartHeader& header, std::span<const std::byte> bytes) override;
  bool on_part_offered(const PartHeader& header, std::size_t bytes, void* offer) override;
  void on_garbage() override;
  void on_endpoint_failed(std::string reason) override;
  // Inbox::Sink
  void message(Channel channel, std::span<const std::byte> bytes,
               std::span<Buffer> segments) override;
  void released(std::uint64_t segment) override;
  void bye() override;
  void may_lend() override;
  void lent(std::uint64_t segment, std::uint64_t address, std::size_t size) override;

  void on_dialed();
  void on_handshake_message(std::span<const std::byte> message);
  Status open_access();
  Status connect_worker();
  void become_connected();
  bool same_host() const;
  void probe_memory();
  void send_frames();
  bool progress_until(TimePoint until);
  void note_breakage(Error what);
  void note(Status status);
  void note(Error error);
  void end_if_failed();
  void end(Error reason, bool tell);
  void watch_writes();
  std::string describe() const;

  PeerHost& host_;
  const std::uint64_t token_;
  const bool loopback_, outgoing_;
  const Address address_;  ///< dialed
  Done done_;
  Stage stage_;
  PeerId id_ = 0;
  TimePoint deadline_{};
  TimePoint last_activity_{};
  std::optional<Error> failure_;
  std::optional<Error> breakage_;  ///< UCX's word for it; TCP may still bring a better one
  TimePoint reason_until_{};
  bool active_ = false;

  ControlChannel control_;
  bool watching_writes_ = false;
  Handshake handshake_;
  const std::uint64_t session_;
  const std::uint64_t probe_value_;

  std::shared_ptr<Outbox> outbox_;
  std::unique_ptr<Inbox> inbox_;
  std::unique_ptr<UcxWorker> worker_;
  std::unique_ptr<PeerSegments> segments_;

  bool flush_wanted_ = false;
  std::uint64_t next_sequence_ = 0;
  std::deque<ChunkPtr> frames_;
  std::size_t frames_in_flight_ = 0;
  std::vector<std::unique_ptr<FrameOperation>> operations_;
  std::vector<FrameOperation*> free_operations_;
  std::vector<ChunkPtr> taken_frames_;
  std::vector<OutSegment> taken_segments_;
};

}  // namespace troupe::transport
