#include "runtime/remoting/internal/pending_requests.hpp"

#include <utility>

#include <caf/actor_cast.hpp>

namespace troupe::remoting {

std::size_t PendingRequests::home(std::uint64_t actor, caf::message_id id) const {
  const auto hash =
      (actor * 0x9E3779B97F4A7C15ull) ^ (id.request_id().integer_value() * 0xC2B2AE3D27D4EB4Full);
  return static_cast<std::size_t>(hash ^ (hash >> 29)) & (slots_.size() - 1);
}

void PendingRequests::insert(Slot slot) {
  const auto mask = slots_.size() - 1;
  auto at = home(slot.actor, slot.request.id);
  while (slots_[at].actor != 0) at = (at + 1) & mask;
  slots_[at] = std::move(slot);
  ++used_;
}

void PendingRequests::grow() {
  // What actors that are gone had asked is forgotten first; then there may be room enough.
  std::vector<Slot> live;
  for (auto& slot : slots_)
    if (slot.actor != 0 && slot.request.sender.lock() != nullptr) live.push_back(std::move(slot));
  const auto wanted = live.size() * 4 >= slots_.size() ? slots_.size() * 2 : slots_.size();
  slots_.clear();
  slots_.resize(wanted != 0 ? wanted : 64);
  used_ = 0;
  for (auto& slot : live) insert(std::move(slot));
}

void PendingRequests::erase(std::size_t hole) {
  const auto mask = slots_.size() - 1;
  for (auto next = (hole + 1) & mask; slots_[next].actor != 0; next = (next + 1) & mask) {
    const auto wanted = home(slots_[next].actor, slots_[next].request.id);
    // Moves back only what the hole cuts off from its home.
    if (((next - wanted) & mask) < ((next - hole) & mask)) continue;
    slots_[hole] = std::move(slots_[next]);
    hole = next;
  }
  slots_[hole] = {};
  --used_;
}

void PendingRequests::add(const caf::strong_actor_ptr& sender, caf::message_id id,
                          const Route* route) {
  Slot slot{sender->id(), {caf::actor_cast<caf::weak_actor_ptr>(sender), id, route}};
  MutexLock lock(mutex_);
  if (2 * (used_ + 1) > slots_.size()) grow();
  insert(std::move(slot));
}

void PendingRequests::add_foreign(const caf::strong_actor_ptr& sender, caf::message_id id,
                                  const Route* route) {
  MutexLock lock(mutex_);
  if (foreign_.size() == kMaxForeign) foreign_.pop_front();
  foreign_.push_back({caf::actor_cast<caf::weak_actor_ptr>(sender), id, route});
}

bool PendingRequests::remove(caf::actor_id sender, caf::message_id id) {
  MutexLock lock(mutex_);
  if (used_ == 0) return false;
  const auto mask = slots_.size() - 1;
  const auto number = id.request_id();
  for (auto at = home(sender, id); slots_[at].actor != 0; at = (at + 1) & mask) {
    if (slots_[at].actor != sender || slots_[at].request.id.request_id() != number) continue;
    erase(at);
    return true;
  }
  return false;
}

std::vector<PendingRequests::Request> PendingRequests::take(const Route* route) {
  std::vector<Request> taken;
  MutexLock lock(mutex_);
  std::vector<Slot> kept;
  for (auto& slot : slots_) {
    if (slot.actor == 0) continue;
    if (route == nullptr || slot.request.route == route)
      taken.push_back(std::move(slot.request));
    else
      kept.push_back(std::move(slot));
  }
  for (auto& slot : slots_) slot = {};
  used_ = 0;
  for (auto& slot : kept) insert(std::move(slot));
  for (auto& request : foreign_)
    if (route == nullptr || request.route == route) taken.push_back(std::move(request));
  std::erase_if(foreign_, [route](const Request& request) {
    return route == nullptr || request.route == route;
  });
  return taken;
}

std::size_t PendingRequests::size() const {
  MutexLock lock(mutex_);
  return used_ + foreign_.size();
}

}  // namespace troupe::remoting
