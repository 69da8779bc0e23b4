#include "runtime/transport/internal/peer.hpp"

#include <utility>

#include <fmt/format.h>
#include <openssl/rand.h>

#include "runtime/transport/internal/host_memory.hpp"

namespace troupe::transport {
namespace {

/// Frames handed to UCX at once. While they are out, more messages gather in fuller frames.
constexpr std::size_t kMaxFramesInFlight = 64;
constexpr std::size_t kFrameBytes = 8000;  ///< with its headers one buffer of UCX's shared memory
/// How long one peer's arrivals may keep the thread from the others, and from news of an end.
constexpr Duration kWorkTime = std::chrono::microseconds(200);
constexpr Duration kLastWorkTime = std::chrono::milliseconds(50);
/// UCX sees a worker end before the other side's reason for it has come over TCP.
constexpr Duration kReasonTime = std::chrono::milliseconds(100);
constexpr Duration kDrainTime = std::chrono::seconds(1);

template <class T>
T random_value() {
  T value{};
  TROUPE_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(&value), sizeof value) == 1,
               "the system has no random numbers");
  return value;
}

Greeting with_nonce(Greeting greeting) {
  greeting.nonce = random_value<decltype(greeting.nonce)>();
  return greeting;
}

}  // namespace

class Peer::FrameOperation final : public UcxWorker::Operation {
public:
  explicit FrameOperation(Peer& peer) : peer_(peer) {}
  void completed(bool ok) override {
    --peer_.frames_in_flight_;
    peer_.outbox_->recycle(std::move(chunk));
    peer_.free_operations_.push_back(this);
    if (!ok) peer_.note_breakage({Code::unavailable, "a frame could not be sent"});
  }
  ChunkPtr chunk;

private:
  Peer& peer_;
};

Peer::Peer(PeerHost& host, Dialed dialed, std::uint64_t token)
    : host_(host),
      token_(token),
      loopback_(dialed.loopback),
      outgoing_(false),
      stage_(Stage::shaking),
      control_(std::move(dialed.socket)),
      handshake_(Handshake::Role::acceptor, with_nonce(host.greeting()), host.options().token),
      session_(random_value<std::uint64_t>()),
      probe_value_(random_value<std::uint64_t>()) {}

Peer::Peer(PeerHost& host, Dialed dialed, std::uint64_t token, Address address, Done done)
    : host_(host),
      token_(token),
      loopback_(dialed.loopback),
      outgoing_(true),
      address_(std::move(address)),
      done_(std::move(done)),
      stage_(Stage::dialing),
      control_(std::move(dialed.socket)),
      handshake_(Handshake::Role::connector, with_nonce(host.greeting()), host.options().token),
      session_(random_value<std::uint64_t>()),
      probe_value_(random_value<std::uint64_t>()) {}

Peer::~Peer() {
  // First the worker: until it is gone UCX may read and write what the others own.
  worker_.reset();
}

std::string Peer::describe() const {
  if (outgoing_) return to_string(address_);
  return handshake_.proven() ? fmt::format("node \"{}\"", handshake_.other().name) : "a stranger";
}

void Peer::start(TimePoint now) {
  last_activity_ = now;
  deadline_ = now + host_.options().connect_timeout;
  watch_host(control_.socket(), host_.options().host_silence);
  note(host_.poller().add(control_.fd(), token_, stage_ == Stage::dialing));
  watching_writes_ = stage_ == Stage::dialing;
  end_if_failed();
}

void Peer::note(Error error) {
  if (!failure_) failure_ = std::move(error);
}

void Peer::note(Status status) {
  if (!status.ok()) note(std::move(status).error());
}

void Peer::watch_writes() {
  const bool wanted = control_.wants_write();
  if (stage_ == Stage::dead || wanted == watching_writes_) return;
  watching_writes_ = wanted;
  host_.poller().change(control_.fd(), token_, wanted);
}

void Peer::on_dialed() {
  const Status connected = dial_result(control_.socket(), address_);
  if (!connected.ok()) return note(connected);
  stage_ = Stage::shaking;
  note(control_.send(handshake_.start()));
}

void Peer::on_control_event(TimePoint now) {
  if (stage_ == Stage::dead) return;
  last_activity_ = now;
  if (stage_ == Stage::dialing) {
    on_dialed();
  } else if (stage_ != Stage::lingering) {
    note(control_.flush());
  }
  std::vector<Bytes> messages;
  Status read;
  if (!failure_ && stage_ != Stage::dialing) read = control_.receive(messages);
  for (const Bytes& message : messages) {
    if (failure_) break;
    if (shaking()) {
      on_handshake_message(message);
    } else if (auto refusal = decode_refusal(message)) {
      note(Error{refusal->code,
                 fmt::format("{} closed the connection: {}", describe(), refusal->message)});
    } else {
      note(Error{Code::protocol_error, "a control message came after the handshake"});
    }
  }
  if (stage_ == Stage::lingering) {
    if (!read.ok()) stage_ = Stage::dead;
    if (stage_ == Stage::dead) host_.poller().remove(control_.fd());
    return;
  }
  if (!read.ok() && !failure_) {
    // What the peer sent before it ended may still be on its way through UCX.
    progress_until(now + kLastWorkTime);
    if (read.code() == Code::unavailable)
      note(Error{Code::unavailable, fmt::format("the connection to {} ended: the other process has "
                                                "died, closed it, or cannot be reached",
                                                describe())});
    else
      note(read);
  }
  watch_writes();
  end_if_failed();
}

void Peer::on_handshake_message(std::span<const std::byte> message) {
  Bytes reply;
  const Status status = handshake_.on_message(message, reply);
  if (!status.ok()) return note(status);
  if (!reply.empty()) note(control_.send(reply));
  if (handshake_.proven() && !worker_ && !failure_) note(open_access());
  if (!handshake_.done() || failure_ || breakage_) return;
  // If it fails, the peer may be gone again, and why is on its way.
  if (const Status connected = connect_worker(); connected.ok())
    become_connected();
  else
    note_breakage(connected.error());
}

bool Peer::same_host() const {
  return host_.options().shared_memory && handshake_.other().host == host_.greeting().host;
}

Status Peer::open_access() {
  TROUPE_ASSIGN(UcxContext * context, host_.context({host_.options().tls, same_host(), loopback_}));
  TROUPE_ASSIGN(worker_, UcxWorker::make(*context, *this));
  const Options& options = host_.options();
  outbox_ = std::make_shared<Outbox>(Outbox::Options{.chunk_bytes = kFrameBytes,
                                                     .max_queued_bytes = options.max_queued_bytes,
                                                     .max_message_bytes = options.max_message_bytes,
                                                     .max_segment_bytes = options.max_segment_bytes,
                                                     .send_timeout = options.send_timeout},
                                     host_.pool());
  inbox_ = std::make_unique<Inbox>(Inbox::Limits{.max_segment_bytes = options.max_segment_bytes,
                                                 .max_incoming_bytes = options.max_incoming_bytes},
                                   host_.pool(), static_cast<Inbox::Sink&>(*this));
  inbox_->hold();  // the peer may be connected before we are
  segments_ =
      std::make_unique<PeerSegments>(*worker_, *inbox_, *outbox_, handshake_.other().process);
  Access access;
  TROUPE_ASSIGN(access.address, worker_->address());
  access.session = session_;
  access.probe_at = reinterpret_cast<std::uint64_t>(&probe_value_);
  access.probe_value = probe_value_;
  TROUPE_TRY(host_.poller().add(worker_->event_fd(), token_ + 1));
  return control_.send(handshake_.offer(access));
}

Status Peer::connect_worker() {
  const Access& access = handshake_.access();
  TROUPE_TRY(worker_->connect(access.address));
  segments_->set_peer_session(access.session);
  return {};
}

void Peer::become_connected() {
  const Greeting& other = handshake_.other();
  stage_ = Stage::connected;
  PeerInfo info{other.node,    other.name,  other.build, other.listens_at,
                other.process, same_host(), outgoing_};
  id_ = host_.on_peer_connected(*this, info);
  probe_memory();
  if (done_) std::exchange(done_, nullptr)(id_);
  note(inbox_->resume());
}

/// Reading a known value from the peer's memory tells more surely than any rule whether big
/// segments may be read in the same way.
void Peer::probe_memory() {
  const Access& access = handshake_.access();
  if (!same_host() || !tls_allows_memory_reads(tls_in_force(host_.options().tls))) return;
  std::uint64_t value = 0;
  const Status read = read_process_memory(handshake_.other().process, access.probe_at,
                                          reinterpret_cast<std::byte*>(&value), sizeof value);
  if (!read.ok() || value != access.probe_value) return;
  inbox_->borrow_memory();
  outbox_->append_control(RecordKind::may_lend, 0);
  flush();
}

void Peer::flush() {
  if (!connected() || failure_ || breakage_) return;
  flush_wanted_ = true;
  send_frames();
}

void Peer::send_frames() {
  while (frames_in_flight_ < kMaxFramesInFlight && !failure_ && !breakage_) {
    if (frames_.empty()) {
      if (!std::exchange(flush_wanted_, false)) return;
      outbox_->take(taken_frames_, taken_segments_);
      for (ChunkPtr& frame : taken_frames_) frames_.push_back(std::move(frame));
      for (OutSegment& segment : taken_segments_) {
        host_.counters().bytes_sent.fetch_add(segment.buffer.size(), std::memory_order_relaxed);
        segments_->send(std::move(segment));
      }
      taken_frames_.clear();
      taken_segments_.clear();
      if (frames_.empty()) return;
    }
    if (free_operations_.empty()) {
      operations_.push_back(std::make_unique<FrameOperation>(*this));
      free_operations_.push_back(operations_.back().get());
    }
    FrameOperation& op = *free_operations_.back();
    free_operations_.pop_back();
    op.chunk = std::move(frames_.front());
    frames_.pop_front();
    Chunk& chunk = *op.chunk;
    chunk.header = FrameHeader{handshake_.access().session, next_sequence_++};
    ++frames_in_flight_;
    host_.counters().frames_sent.fetch_add(1, std::memory_order_relaxed);
    host_.counters().bytes_sent.fetch_add(chunk.size, std::memory_order_relaxed);
    const auto progress = worker_->send_frame(chunk.header, {chunk.data.get(), chunk.size}, op);
    if (progress != UcxWorker::Progress::pending)
      op.completed(progress == UcxWorker::Progress::done);
  }
}

bool Peer::progress_until(TimePoint until) {
  bool moved = false;
  while (worker_ && !failure_ && worker_->progress()) {
    moved = true;
    if (std::chrono::steady_clock::now() >= until) break;
  }
  return moved;
}

bool Peer::work(TimePoint now) {
  if (!worker_ || stage_ == Stage::dead) return false;
  bool moved = false;
  moved = progress_until(now + kWorkTime);
  if (connected() && !failure_ && !breakage_) {
    if (flush_wanted_ || !frames_.empty()) send_frames();
    const Status status = segments_->work([this] { return !control_.disturbed(); }, moved);
    // Unavailable: the bytes did not get through, so the peer's end is on its way.
    if (status.code() == Code::unavailable)
      note_breakage({Code::unavailable, status.error().message});
    else
      note(status);
    host_.counters().bytes_received.fetch_add(segments_->take_received(),
                                              std::memory_order_relaxed);
    if (segments_->take_wants_flush()) flush();
  }
  if (moved) last_activity_ = now;
  end_if_failed();
  return moved;
}

bool Peer::may_sleep() {
  if (!worker_) return true;
  if (segments_ && segments_->has_more_to_do()) return false;
  return worker_->arm();
}

bool Peer::has_open_operations() const {
  return worker_ && (frames_in_flight_ != 0 || (segments_ && segments_->has_open_operations()));
}

void Peer::check_deadline(TimePoint now) {
  if (breakage_ && now >= reason_until_ && !failure_) note(*breakage_);
  if (stage_ == Stage::connected) end_if_failed();
  if (now < deadline_ || stage_ == Stage::connected || stage_ == Stage::dead) return;
  if (stage_ == Stage::draining) {
    note(Error{Code::cancelled, "the peer did not take what was queued in time"});
  } else if (shaking()) {
    note(Error{Code::deadline_exceeded,
               fmt::format("{} did not finish the handshake within {} ms: check that a Troupe node "
                           "listens there and is not stopped",
                           describe(),
                           std::chrono::duration_cast<std::chrono::milliseconds>(
                               host_.options().connect_timeout)
                               .count())});
  }
  end_if_failed();
}

void Peer::close(Status reason, TimePoint now) {
  if (stage_ == Stage::draining || !connected()) return;
  if (!reason.ok()) return end(std::move(reason).error(), true);
  stage_ = Stage::draining;
  deadline_ = now + kDrainTime;
  outbox_->seal(
      Error{Code::unavailable, fmt::format("the connection to {} is closing", describe())});
  outbox_->append_control(RecordKind::bye, 0);
  flush();
}

void Peer::abandon(const Error& reason) {
  if (stage_ == Stage::dead) return;
  end(reason, true);
  if (std::exchange(stage_, Stage::dead) != Stage::dead) host_.poller().remove(control_.fd());
}

void Peer::end_if_failed() {
  if (failure_ && stage_ != Stage::dead && stage_ != Stage::lingering) end(*failure_, true);
}

void Peer::end(Error reason, bool tell) {
  const Stage before = std::exchange(stage_, Stage::lingering);
  if (before >= Stage::lingering) {
    stage_ = before;
    return;
  }
  // After our own goodbye every way to the end is the same.
  if (before == Stage::draining)
    reason = Error{Code::cancelled, fmt::format("the connection to {} was closed", describe())};
  else if (tell && before != Stage::dialing && reason.code != Code::unavailable)
    (void)control_.send(encode_refusal(reason)).ok();
  control_.finish();
  if (outbox_) outbox_->close(Error{Code::unavailable, reason.message});
  if (worker_) host_.poller().remove(worker_->event_fd());
  worker_.reset();
  if (before >= Stage::connected) {
    host_.on_peer_lost(id_, reason);
  } else if (done_) {
    std::exchange(done_, nullptr)(std::move(reason));
  }
  // Lent memory stays as it is until the peer has ended, too: it may be reading it.
  if (segments_ && segments_->has_lent() && !control_.disturbed()) return;
  stage_ = Stage::dead;
  host_.poller().remove(control_.fd());
}

void Peer::on_frame(const FrameHeader& header, std::span<const std::byte> frame) {
  if (failure_ || stage_ >= Stage::lingering) return;
  if (header.session != session_) return;  // not from the peer that we shook hands with
  host_.counters().frames_received.fetch_add(1, std::memory_order_relaxed);
  host_.counters().bytes_received.fetch_add(frame.size(), std::memory_order_relaxed);
  note(inbox_->on_frame(header.sequence, frame));
}

void Peer::on_part(const PartHeader& header, std::span<const std::byte> bytes) {
  if (failure_ || stage_ >= Stage::lingering || header.session != session_) return;
  note(segments_->on_part(header, bytes));
}

bool Peer::on_part_offered(const PartHeader& header, std::size_t bytes, void* offer) {
  if (failure_ || stage_ >= Stage::lingering || header.session != session_) return false;
  segments_->on_part_offered(header, bytes, offer);
  return true;
}

void Peer::on_garbage() {
  note(Error{Code::protocol_error, "an active message of an unknown form"});
}

void Peer::on_endpoint_failed(std::string reason) {
  note_breakage(
      {Code::unavailable, fmt::format("the connection to {} broke: {}", describe(), reason)});
}

void Peer::note_breakage(Error what) {
  if (breakage_ || failure_) return;
  breakage_ = std::move(what);
  reason_until_ = std::chrono::steady_clock::now() + kReasonTime;
  host_.check_deadline_later(*this, reason_until_);
}

void Peer::message(Channel channel, std::span<const std::byte> bytes, std::span<Buffer> segments) {
  host_.counters().messages_received.fetch_add(1, std::memory_order_relaxed);
  host_.on_peer_message(id_, channel, bytes, segments);
}

void Peer::released(std::uint64_t segment) {
  note(segments_->released(segment));
}

void Peer::bye() {
  note(Error{stage_ == Stage::draining ? Code::cancelled : Code::unavailable,
             fmt::format("{} closed the connection", describe())});
}

void Peer::may_lend() {
  outbox_->lend_memory();
}

void Peer::lent(std::uint64_t segment, std::uint64_t address, std::size_t size) {
  segments_->on_lent(segment, address, size);
}

}  // namespace troupe::transport
