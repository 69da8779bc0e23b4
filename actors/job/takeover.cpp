#include "actors/job/takeover.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <caf/scoped_actor.hpp>

#include "actors/job/register.hpp"
#include "actors/train/messages.hpp"
#include "actors/train/surveyor.hpp"

namespace troupe::train {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(5);

/// A reducer and what it said.
struct FoundReducer {
  JobNode node;
  caf::actor actor;
  Reported report;
};

template <class Answer, class Request>
std::optional<Answer> ask(caf::scoped_actor& self, const caf::actor& actor, Request request) {
  std::optional<Answer> answer;
  self->request(actor, kAnswerTime, std::move(request))
      .receive([&](Answer& x) { answer = std::move(x); }, [](caf::error&) {});
  return answer;
}

}  // namespace

FoundJob find_job(Runtime& runtime, const View& view, std::uint64_t job, Inherited& inherited) {
  FoundJob found;
  std::vector<FoundReducer> reducers;
  caf::scoped_actor self{runtime.system()};
  for (const auto& member : view.members) {
    if (member.slots == 0) continue;
    const auto surveyor =
        runtime.spawn_on(member.node, kSurveyorType, caf::make_message(), kAnswerTime);
    if (!surveyor.ok()) continue;  // it is being lost
    const auto answer = ask<Surveyed>(self, *surveyor, Survey{job});
    if (!answer) continue;
    for (const auto& entry : answer->actors) {
      found.actors[entry.generation].push_back(entry.actor);
      inherited.last_generation = std::max(inherited.last_generation, entry.generation);
      if (entry.role != Role::reducer) continue;
      if (const auto report = ask<Reported>(self, entry.actor, Report{}))
        reducers.push_back({{member.node, member.name}, entry.actor, *report});
    }
  }
  for (const auto& x : reducers)
    if (x.report.begun) inherited.generation = std::max(inherited.generation, x.report.generation);
  if (inherited.generation == 0) return found;
  inherited.undisturbed = true;
  for (const auto& x : reducers) {
    const Reported& report = x.report;
    if (report.generation != inherited.generation || report.index >= report.nodes) continue;
    inherited.nodes.resize(report.nodes);
    inherited.nodes[report.index] = x.node;
    found.reducers.resize(report.nodes);
    found.reducers[report.index] = x.actor;
    inherited.steps_per_epoch = report.steps_per_epoch;
    inherited.parameters = report.parameters;
    inherited.undisturbed &= report.begun && !report.stopped;
  }
  for (const auto& node : inherited.nodes) inherited.undisturbed &= node.node.valid();
  return found;
}

}  // namespace troupe::train
