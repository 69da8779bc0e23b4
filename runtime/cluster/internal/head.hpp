#pragma once

#include <memory>
#include <vector>

#include "runtime/cluster/internal/participant.hpp"
#include "runtime/cluster/internal/process_watch.hpp"
#include "runtime/membership/head_machine.hpp"

namespace troupe::cluster {

/// Leads a cluster from this process: a HeadMachine, wired. Watches members' processes where they
/// are on the same host. Ownership, threads: as Participant.
class Head final : public Participant {
public:
  Head(transport::Transport& actors, transport::Transport& liveness, const Clock& clock,
       Events& events)
      : Participant(actors, liveness, clock, events) {}

  /// Leads as `options` say. Once, instead of begin().
  void lead(membership::HeadMachine::Options options);
  /// Another leads. Threads: any.
  void depose(const Error& reason);

private:
  std::unique_ptr<membership::Machine> make_machine(TimePoint now) override;
  void before_tick(TimePoint now) override;
  void after_view(const View& view, const std::vector<Departure>& departures) override;

  membership::HeadMachine::Options options_;
  membership::HeadMachine* machine_ = nullptr;
  ProcessWatch processes_;
};

}  // namespace troupe::cluster
