#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.hpp"
#include "runtime/base/node_id.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::transport {

/// What two nodes must agree on to talk at all. Grows with any change of what is on the wire.
inline constexpr std::uint32_t kProtocolVersion = 1;

/// Number of one connection, counted up by this transport and never reused. 0 is "none".
using PeerId = std::uint64_t;

/// Who a message is for inside the process. One handler each.
enum class Channel : std::uint8_t { membership = 0, actors = 1, count = 2 };

/// Where a transport listens: a numeric address or host name, and a port.
struct Address {
  std::string host;
  std::uint16_t port = 0;

  /// "host:port" or "[v6]:port". Error: `invalid_argument` with the text and the form wanted.
  static Result<Address> parse(std::string_view text);
  bool operator==(const Address&) const = default;
};
std::string to_string(const Address& address);

/// The number of this machine's interface by which it reaches `other`. Errors: `invalid_argument`
/// (no such host), `unavailable` (no route).
Result<std::string> local_host_towards(const Address& other);

/// What a peer said (and, with a token, proved) in the handshake.
struct PeerInfo {
  NodeId node;
  std::string name;    ///< for people: "node-3"
  std::string build;   ///< version and compiler, for messages
  Address listens_at;  ///< port 0 if it does not listen
  std::uint32_t process = 0;
  bool same_host = false;  ///< shares memory with this process
  bool outgoing = false;   ///< this side connected
};

/// Takes what arrives. Every call comes from the thread that makes progress at that moment, one at
/// a time; `on_message` of one peer in the order of its sends. A handler must return soon (its
/// thread carries all traffic) and may call any method of Transport but stop().
class Handler {
public:
  virtual ~Handler() = default;
  /// The handshake with `peer` is done. Comes before any message of it.
  virtual void on_connected(PeerId peer, const PeerInfo& info) = 0;
  /// `bytes` is valid during the call only and 8-byte aligned; `segments` may be kept (move from
  /// them).
  virtual void on_message(PeerId peer, std::span<const std::byte> bytes,
                          std::span<Buffer> segments) = 0;
  /// The peer is gone: closed, died, broke the protocol, or was closed by this side. Comes exactly
  /// once for each on_connected, after its last message.
  virtual void on_lost(PeerId peer, const Error& reason) = 0;
};

/// Settings that change speed and safety limits, never results.
struct Options {
  NodeId node;                ///< required: this process's name
  std::string name = "node";  ///< for people
  std::string token;          ///< cluster token; empty means none (loopback only)
  Duration connect_timeout = std::chrono::seconds(5);
  Duration host_silence = std::chrono::seconds(5);   ///< of the peer's kernel; then it is lost
  Duration send_timeout = std::chrono::seconds(10);  ///< how long a full queue may block a sender
  std::size_t max_queued_bytes = std::size_t{256} << 20;  ///< per peer, before a sender blocks
  std::size_t max_message_bytes = std::size_t{64} << 20;  ///< `bytes` of one message
  std::size_t max_segment_bytes = std::size_t{8} << 30;   ///< one segment
  Duration spin = std::chrono::microseconds(50);  ///< polling after the last traffic before sleep
  std::size_t max_incoming_bytes = std::size_t{1} << 30;  ///< per peer: segments on their way in
  bool shared_memory = true;  ///< use it for peers of this host (UCX_TLS still rules)
  bool run_inline = true;     ///< false: Transport::run_inline() always declines
  std::string tls;            ///< UCX transports, as in UCX_TLS; empty: that variable, else all
  std::string thread_name = "troupe.io";
};

struct Stats {
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t frames_sent = 0, frames_received = 0;  ///< several messages may share a frame
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  std::uint64_t sleeps = 0;
  std::size_t queued_bytes = 0;
  std::size_t peers = 0;
};

/// Moves messages between processes: in order per peer, each exactly once or on_lost.
///
/// A message is some bytes (copied: a header and a body) and any number of segments (Buffers that
/// are sent from where they lie and land in pooled memory).
///
/// Ownership: owned by a Runtime. Handlers are borrowed and outlive the transport's stop().
/// Threads:   any, unless a method says otherwise. Must be stopped before it is destroyed.
/// Failure:   the loss of a peer is reported by on_lost and is never fatal.
///
/// Each peer has one TCP connection (the handshake, then silence: its end is the peer's end, which
/// the kernel reports at once when a process is killed) and a UCX worker of its own. If its host
/// vanishes or a network drops everything, that connection breaks after `host_silence`. A peer that
/// is stopped but not dead looks like a slow one: heartbeats are up to the caller.
///
/// UCX's sockets are not close-on-exec. A child process must be started with its descriptors closed
/// (posix_spawn_file_actions_addclosefrom_np), and there must be no plain fork() after start().
class Transport {
public:
  virtual ~Transport() = default;

  /// Before start(). Replaces nothing: one handler per channel.
  virtual void set_handler(Channel channel, Handler& handler) = 0;

  /// Starts the progress thread. Errors: `io_error` if UCX cannot start, with its reason.
  virtual Status start() = 0;

  /// Accepts connections at `address`; port 0 picks one. Returns where it listens.
  /// Errors: `address_in_use`, `invalid_argument`, `permission_denied` (not loopback and no token).
  virtual Result<Address> listen(const Address& address) = 0;

  /// Connects and shakes hands. `done` is called once, on the progress thread: after on_connected,
  /// or with `unavailable`, `deadline_exceeded`, `permission_denied`, `version_mismatch`.
  virtual void connect(const Address& address, std::function<void(Result<PeerId>)> done) = 0;

  /// Queues one message. `head` and `body` are copied, one behind the other; segments are not.
  /// Never blocks the progress thread, which may go to twice the queue's bound. Blocks any other
  /// thread while the peer's queue is full, at most `send_timeout`. Errors: `unavailable` (peer
  /// gone), `resource_exhausted` (stayed full), `invalid_argument` (too large).
  virtual Status send(PeerId peer, Channel channel, std::span<const std::byte> head,
                      std::span<const std::byte> body, std::vector<Buffer> segments) = 0;

  /// Sends what is queued, then closes; on_lost follows with `cancelled`. With `reason` not ok the
  /// queue is dropped and the peer is told the reason's sentence.
  virtual void close(PeerId peer, Status reason = {}) = 0;

  /// Runs `task` on the progress thread soon.
  virtual void post(std::function<void()> task) = 0;

  /// Runs `task` on the progress thread at `when` or a little later.
  virtual void post_at(TimePoint when, std::function<void()> task) = 0;

  /// Runs `work` on the progress thread after the current batch of arrivals, while no other work
  /// waits. If it takes long, another thread takes over the transport's progress and what is still
  /// queued here goes to `overflow` instead. Call from the progress thread only (see
  /// on_progress_thread()). Returns false if it declines: run `work` elsewhere. Work after which
  /// on_progress_thread() is false ran too long: better run its like elsewhere from then on.
  virtual bool run_inline(std::function<void()> work, std::function<void()> overflow) = 0;

  /// True on the thread that makes progress at this moment.
  virtual bool on_progress_thread() const = 0;

  virtual Stats stats() const = 0;

  /// Closes every peer (flushing for at most a second), ends the threads. Idempotent. Any thread
  /// but the progress thread.
  virtual void stop() = 0;
};

/// The transport over UCX. Errors: `invalid_argument` for options that make no sense.
Result<std::unique_ptr<Transport>> make_ucx_transport(Options options);

}  // namespace troupe::transport
