#include "tools/client.hpp"

#include <optional>
#include <utility>

#include <caf/send.hpp>
#include <fmt/format.h>

namespace troupe::tool {

Result<Client> Client::connect(const NodeOptions& options, bool wait) {
  NodeOptions visitor = options;
  visitor.slots = 0;
  if (visitor.name.empty()) visitor.name = "client";
  TROUPE_ASSIGN(auto runtime_options, visitor.runtime_options());
  runtime_options.wait_for_head = wait;
  Client client;
  TROUPE_ASSIGN(client.runtime, options.join(std::move(runtime_options)));
  client.head = client.runtime->view().head;
  TROUPE_ASSIGN(client.jobs, client.runtime->lookup(client.head, train::kJobServiceName));
  return client;
}

Status Client::find_next_head(std::uint64_t job) {
  constexpr auto kLook = std::chrono::milliseconds(50);
  for (;;) {
    if (runtime->wait_until_out(kLook).ok())
      return {Code::unavailable, fmt::format("{}; start a head again and look with `troupe status`",
                                             runtime->membership_status().error().message)};
    const NodeId now = runtime->view().head;
    if (now == head) continue;
    // Its jobs come a moment after its cluster.
    auto service = runtime->lookup(now, train::kJobServiceName);
    if (!service.ok()) continue;
    head = now;
    MutexLock lock(shared->mutex);
    jobs = *service;
    shared->headless = false;
    if (shared->cancelled) caf::anon_send(jobs, train::CancelJob{job});
    return {};
  }
}

Result<train::JobEnded> Client::follow(std::uint64_t job, train::JobObserver& observer) {
  caf::scoped_actor self{runtime->system()};
  bool started = false;
  std::optional<train::JobEnded> end;
  for (;;) {
    self->monitor(jobs);
    // From a head that is gone already comes a down message, too.
    if (const auto watched = ask<train::JobRecord>(self, train::WatchJob{job});
        !watched.ok() && watched.error().code != Code::unavailable)
      return watched.error();
    bool receiving = true;
    self->receive_while(receiving)(
        [&](const train::JobStarted& x) {
          if (!std::exchange(started, true)) observer.on_started(x);
        },
        [&](const train::StepFinished& x) { observer.on_step(x); },
        [&](const train::EpochFinished& x) { observer.on_epoch(x); },
        [&](const train::GenerationBegun& x) { observer.on_generation(x); },
        [&](const train::CheckpointWritten& x) { observer.on_checkpoint(x); },
        [&](const train::Notice& x) { observer.on_notice(x); },
        [&](const train::JobEnded& x) {
          observer.on_ended(x);
          end = x;
          receiving = false;
        },
        [&](const caf::down_msg&) { receiving = false; });
    if (end) return *end;
    bool cancelled = false;
    {
      MutexLock lock(shared->mutex);
      shared->headless = true;
      cancelled = shared->cancelled;
    }
    observer.on_notice(
        {"the cluster's head is gone; waiting for another head (jobs of a head with a "
         "store go on meanwhile)"});
    // The old head may have died with the wish.
    if (cancelled) observer.on_notice({cancelled_later(job)});
    TROUPE_TRY(find_next_head(job));
    observer.on_notice({"another head leads the cluster"});
  }
}

std::string Client::cancelled_later(std::uint64_t job) {
  return fmt::format(
      "job {} is cancelled as soon as there is a head again; interrupt once more to leave it "
      "running",
      job);
}

bool Client::cancel(std::uint64_t job) {
  MutexLock lock(shared->mutex);
  shared->cancelled = true;
  if (shared->headless) return false;
  caf::anon_send(jobs, train::CancelJob{job});
  return true;
}

}  // namespace troupe::tool
