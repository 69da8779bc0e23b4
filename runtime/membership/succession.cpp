#include "runtime/membership/succession.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::membership {
namespace {

constexpr Duration kRetry = std::chrono::milliseconds(100);
/// Limits of silence until one that can be connected to, or only is silent, has not answered: it
/// may be a busy machine, and to be put out costs more than to wait.
constexpr int kPatience = 3;
constexpr Duration kLateRetry = std::chrono::seconds(1);
/// Of attempts to connect; then there is nobody.
constexpr int kMostFailures = 3;

}  // namespace

Succession::Succession(Takeover takeover, SharedView last, Act act, TimePoint now)
    : takeover_(std::move(takeover)),
      act_(std::move(act)),
      deadline_(now + kPatience * takeover_.timing.limit),
      last_(std::move(last)) {
  seek(*last_, now);
}

/// Looks for those of `view` that are not looked for yet. A former head is no member to find: had
/// it not ended, there would be no new one.
void Succession::seek(const View& view, TimePoint now) {
  for (const auto& member : view.members) {
    if (member.node == view.head || member.node == takeover_.head.node) continue;
    const auto [it, added] = sought_.try_emplace(member.node);
    if (!added) continue;
    Sought& sought = it->second;
    sought.member = member;
    sought.liveness.retry_at = sought.actors.retry_at = now;
    start(sought, Plane::liveness);
    start(sought, Plane::actors);
  }
}

void Succession::start(Sought& sought, Plane plane) {
  way(sought, plane).connect = ++last_connect_;
  act_(Connect{last_connect_, plane,
               plane == Plane::actors ? sought.member.address : sought.member.liveness});
}

bool Succession::connect_done(ConnectId id, const Result<Link>& result, NodeId node,
                              TimePoint now) {
  for (auto& [wanted, sought] : sought_) {
    for (const Plane plane : {Plane::liveness, Plane::actors}) {
      Way& w = way(sought, plane);
      if (w.connect != id) continue;
      w.connect = 0;
      if (result.ok() && node == wanted) {
        w.link = *result;
        if (plane == Plane::liveness) act_(Send{*result, takeover_});
        return true;
      }
      if (result.ok()) act_(Close{*result, {}});  // another process has its port by now
      ++w.failures;
      w.retry_at = now + (late(now) ? kLateRetry : kRetry);
      return true;
    }
  }
  return false;
}

void Succession::followed(Link link, NodeId from, const Followed& answer, TimePoint now) {
  const auto it = sought_.find(from);
  if (it == sought_.end() || it->second.liveness.link != link) return;
  it->second.followed = true;
  if (!answer.view || answer.view->generation <= last_->generation) return;
  last_ = answer.view;
  seek(*last_, now);
}

void Succession::left(NodeId from) {
  if (const auto it = sought_.find(from); it != sought_.end()) it->second.left = true;
}

void Succession::lost(Link link, TimePoint now) {
  for (auto& [node, sought] : sought_) {
    Way& w = way(sought, link.plane);
    if (w.link != link) continue;
    w.link.reset();
    if (late(now)) return void(sought.left = true);  // it was told
    if (link.plane == Plane::liveness) sought.followed = false;
    ++w.failures;
    w.retry_at = now + kRetry;
    return;
  }
}

void Succession::tick(TimePoint now) {
  for (auto& [node, sought] : sought_) {
    if (late(now) && complete(sought)) continue;
    for (const Plane plane : {Plane::liveness, Plane::actors}) {
      const Way& w = way(sought, plane);
      const bool wanted = late(now) ? plane == Plane::liveness && !sought.left : !given_up(sought);
      if (w.connect == 0 && !w.link && now >= w.retry_at && wanted) start(sought, plane);
    }
  }
}

bool Succession::given_up(const Sought& sought) {
  return sought.left || sought.liveness.failures >= kMostFailures ||
         sought.actors.failures >= kMostFailures;
}

bool Succession::done(TimePoint now) const {
  return now >= deadline_ || std::all_of(sought_.begin(), sought_.end(), [](const auto& entry) {
           return complete(entry.second) || given_up(entry.second);
         });
}

Succession::Outcome Succession::outcome() const {
  Outcome outcome;
  outcome.last = last_;
  for (const auto& member : last_->members) {
    const auto it = sought_.find(member.node);
    if (it != sought_.end() && complete(it->second) && !it->second.left) {
      outcome.followers.push_back({member, *it->second.actors.link, *it->second.liveness.link});
      continue;
    }
    const bool left = it != sought_.end() && it->second.left;
    const auto why = left                         ? "left while there was no head"
                     : member.node == last_->head ? "led before, and is gone"
                                                  : "did not answer the new head";
    outcome.departed.push_back(
        {member.node,
         member.name,
         {left ? Code::cancelled : Code::unavailable, fmt::format("{} {}", member.name, why)}});
  }
  for (const auto& [node, sought] : sought_)
    if (last_->find(node) == nullptr) outcome.former.emplace_back(node, sought.liveness.link);
  return outcome;
}

}  // namespace troupe::membership
