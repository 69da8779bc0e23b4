#include "kernels/internal/recorded_pass.hpp"

#include <utility>

namespace troupe::kernels {

Status RecordedPass::enqueue(PassMemory& memory, const Addresses& addresses, const Pass& pass) {
  ++statistics_->passes;
  if (!pieces_.empty() && addresses == addresses_) {
    ++statistics_->replayed;
    return replay(memory);
  }
  pieces_.clear();
  if (!may_record_ && statistics_->not_recorded.empty())
    statistics_->not_recorded =
        "the host has a part in it: a synchronized batch norm, or a layer of one's own";
  if (!ran_ || !may_record_ || !memory.stream().can_record()) {
    // On their first pass kernels make what they keep, which is nothing to be recorded.
    TROUPE_TRY(enqueue_plainly(memory, pass));
    ran_ = true;
    return {};
  }
  const Status recorded = record(memory, pass);
  if (recorded.ok()) {
    addresses_ = addresses;
    return {};
  }
  may_record_ = false;
  statistics_->not_recorded = recorded.error().message;
  // Nobody was told of a gradient yet, and all that was computed is computed again.
  pieces_.clear();
  TROUPE_TRY(memory.settle());
  return enqueue_plainly(memory, pass);
}

Status RecordedPass::enqueue_plainly(PassMemory& memory, const Pass& pass) {
  return pass([&](const ParameterInfo& parameter) -> Status {
    TROUPE_ASSIGN(const bool enough, memory.add_gradient(parameter));
    return enough ? memory.bring_gradients() : Status();
  });
}

Status RecordedPass::record(PassMemory& memory, const Pass& pass) {
  Stream& stream = memory.stream();
  std::vector<const ParameterInfo*> final;
  const auto end_piece = [&]() -> Status {
    TROUPE_ASSIGN(auto work, stream.end_recording());
    if (work != nullptr) TROUPE_TRY(stream.enqueue(*work));
    pieces_.push_back({std::move(work), std::exchange(final, {})});
    return {};
  };
  TROUPE_TRY(stream.begin_recording());
  Status status = pass([&](const ParameterInfo& parameter) -> Status {
    final.push_back(&parameter);
    TROUPE_ASSIGN(const bool enough, memory.add_gradient(parameter));
    if (!enough) return {};
    TROUPE_TRY(end_piece());
    TROUPE_TRY(memory.bring_gradients());
    return stream.begin_recording();
  });
  if (status.ok()) return end_piece();
  static_cast<void>(stream.end_recording());
  return status;
}

Status RecordedPass::replay(PassMemory& memory) {
  for (const Piece& piece : pieces_) {
    if (piece.work != nullptr) TROUPE_TRY(memory.stream().enqueue(*piece.work));
    bool enough = false;
    for (const ParameterInfo* parameter : piece.final) {
      TROUPE_ASSIGN(enough, memory.add_gradient(*parameter));
    }
    if (enough) TROUPE_TRY(memory.bring_gradients());
  }
  return {};
}

}  // namespace troupe::kernels
