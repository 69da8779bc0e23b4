#include "runtime/transport/internal/peer_segments.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "runtime/transport/internal/host_memory.hpp"

namespace troupe::transport {
namespace {

constexpr std::size_t kPartBytes = 4 << 20;
constexpr std::size_t kMaxBytesInFlight = 32 << 20;
constexpr std::size_t kReadBytes = 1 << 20;  ///< at once, so that other traffic gets its turn
constexpr std::size_t kMaxOffers = 1 << 16;

}  // namespace

class PeerSegments::SendOperation final : public UcxWorker::Operation {
public:
  explicit SendOperation(PeerSegments& owner) : owner_(owner) {}
  void completed(bool ok) override { owner_.part_sent(*this, ok); }
  PartHeader header;
  std::size_t bytes = 0;

private:
  PeerSegments& owner_;
};

class PeerSegments::ReceiveOperation final : public UcxWorker::Operation {
public:
  explicit ReceiveOperation(PeerSegments& owner) : owner_(owner) {}
  void completed(bool ok) override { owner_.part_received(*this, ok); }
  std::uint64_t segment = 0;
  std::size_t bytes = 0;

private:
  PeerSegments& owner_;
};

template <class Op>
Op& PeerSegments::fresh(std::vector<std::unique_ptr<Op>>& all, std::vector<Op*>& free) {
  if (free.empty()) {
    all.push_back(std::make_unique<Op>(*this));
    return *all.back();
  }
  Op& op = *free.back();
  free.pop_back();
  return op;
}

PeerSegments::PeerSegments(UcxWorker& worker, Inbox& inbox, Outbox& outbox,
                           std::uint32_t peer_process)
    : worker_(worker), inbox_(inbox), outbox_(outbox), peer_process_(peer_process) {}

PeerSegments::~PeerSegments() = default;

void PeerSegments::send(OutSegment segment) {
  if (segment.buffer.empty()) return;
  const std::uint64_t number = segment.number;
  if (segment.lent) {
    lent_.emplace(number, std::move(segment.buffer));
    return;
  }
  sending_[number].segment = std::move(segment);
  to_post_.push_back(number);
}

Status PeerSegments::released(std::uint64_t segment) {
  const auto at = lent_.find(segment);
  if (at == lent_.end())
    return Error{Code::protocol_error,
                 fmt::format("segment {} was given back but not lent", segment)};
  outbox_.finished(at->second.size());
  lent_.erase(at);
  return {};
}

void PeerSegments::post_parts(bool& moved) {
  while (!to_post_.empty() && bytes_in_flight_ < kMaxBytesInFlight) {
    const std::uint64_t number = to_post_.front();
    Sending& sending = sending_.at(number);
    const auto bytes = std::as_const(sending.segment.buffer).bytes();
    const std::size_t size = std::min(kPartBytes, bytes.size() - sending.posted);
    SendOperation& op = fresh(sends_, free_sends_);
    op.header = PartHeader{peer_session_, number, sending.posted, bytes.size()};
    op.bytes = size;
    const auto part = bytes.subspan(sending.posted, size);
    sending.posted += size;
    if (sending.posted == bytes.size()) to_post_.pop_front();
    ++sending.open_parts;
    ++sends_open_;
    bytes_in_flight_ += size;
    moved = true;
    const auto progress = worker_.send_part(op.header, part, op);
    if (progress != UcxWorker::Progress::pending)
      part_sent(op, progress == UcxWorker::Progress::done);
    if (failed_) break;
  }
}

void PeerSegments::part_sent(SendOperation& op, bool ok) {
  --sends_open_;
  bytes_in_flight_ -= op.bytes;
  failed_ |= !ok;
  const auto at = sending_.find(op.header.segment);
  Sending& sending = at->second;
  --sending.open_parts;
  if (sending.open_parts == 0 && sending.posted == sending.segment.buffer.size()) {
    outbox_.finished(sending.segment.buffer.size());
    sending_.erase(at);
  }
  free_sends_.push_back(&op);
}

Status PeerSegments::on_part(const PartHeader& header, std::span<const std::byte> bytes) {
  // The bytes are here already, so there is no use in waiting for room.
  TROUPE_ASSIGN(std::byte * to, inbox_.destination(header.segment, header.offset, bytes.size(),
                                                   header.total, true));
  std::memcpy(to, bytes.data(), bytes.size());
  arrived_.emplace_back(header.segment, bytes.size());
  return {};
}

void PeerSegments::on_part_offered(const PartHeader& header, std::size_t bytes, void* offer) {
  offers_.push_back({header, bytes, offer});
}

void PeerSegments::on_lent(std::uint64_t segment, std::uint64_t address, std::size_t size) {
  reads_.emplace(segment, Read{address, size, 0, nullptr});
}

Status PeerSegments::accept_offers(bool& moved) {
  if (offers_.size() > kMaxOffers)
    return Error{Code::protocol_error, fmt::format("{} parts wait at once", offers_.size())};
  for (auto at = offers_.begin(); at != offers_.end();) {
    TROUPE_ASSIGN(std::byte * to, inbox_.destination(at->header.segment, at->header.offset,
                                                     at->bytes, at->header.total));
    if (to == nullptr) {
      ++at;
      continue;
    }
    const Offer offer = *at;
    at = offers_.erase(at);
    moved = true;
    ReceiveOperation& op = fresh(receives_, free_receives_);
    op.segment = offer.header.segment;
    op.bytes = offer.bytes;
    ++receives_open_;
    const auto progress = worker_.receive(offer.handle, {to, offer.bytes}, op);
    if (progress != UcxWorker::Progress::pending)
      part_received(op, progress == UcxWorker::Progress::done);
  }
  return {};
}

void PeerSegments::part_received(ReceiveOperation& op, bool ok) {
  --receives_open_;
  failed_ |= !ok;
  if (ok) arrived_.emplace_back(op.segment, op.bytes);
  free_receives_.push_back(&op);
}

Status PeerSegments::read_lent(const std::function<bool()>& alive, bool& moved) {
  if (reads_.empty()) return {};
  // One at a time: the one begun, else the first.
  auto at = std::find_if(reads_.begin(), reads_.end(),
                         [](const auto& entry) { return entry.second.to != nullptr; });
  if (at == reads_.end()) at = reads_.begin();
  const std::uint64_t number = at->first;
  Read& read = at->second;
  if (read.to == nullptr) {
    TROUPE_ASSIGN(read.to, inbox_.destination(number, 0, read.size, read.size));
    if (read.to == nullptr) return {};
  }
  const std::size_t size = std::min(kReadBytes, read.size - read.done);
  TROUPE_TRY(
      read_process_memory(peer_process_, read.address + read.done, read.to + read.done, size));
  read.done += size;
  moved = true;
  if (read.done != read.size) return {};
  // A process that had died in between might have another's memory in its place by now.
  if (!alive()) return {};
  arrived_.emplace_back(number, read.size);
  reads_.erase(at);
  outbox_.append_control(RecordKind::released, number);
  wants_flush_ = true;
  return {};
}

Status PeerSegments::work(const std::function<bool()>& alive, bool& moved) {
  post_parts(moved);
  TROUPE_TRY(accept_offers(moved));
  TROUPE_TRY(read_lent(alive, moved));
  while (!arrived_.empty()) {
    const auto arrived = std::exchange(arrived_, {});
    moved = true;
    for (const auto& [segment, bytes] : arrived) {
      received_ += bytes;
      TROUPE_TRY(inbox_.on_segment_bytes(segment, bytes));
    }
  }
  if (failed_) return Error{Code::unavailable, "a segment could not be moved"};
  return {};
}

}  // namespace troupe::transport
