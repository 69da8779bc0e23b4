#pragma once

#include <memory>
#include <string>

#include <caf/actor.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/job/job_service.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/cluster/runtime.hpp"
#include "runtime/remoting/caf_error.hpp"
#include "tools/commands.hpp"

namespace troupe::tool {

/// A visitor of a cluster: joins without slots, talks to the head's job service, leaves.
struct Client {
  std::unique_ptr<Runtime> runtime;
  caf::actor jobs;
  NodeId head;
  /// What cancel() shares with follow().
  struct Shared {
    Mutex mutex;  ///< of `jobs`, too
    bool headless TROUPE_GUARDED_BY(mutex) = false;
    bool cancelled TROUPE_GUARDED_BY(mutex) = false;
  };
  std::unique_ptr<Shared> shared = std::make_unique<Shared>();

  /// With `wait` the head may start only now. Errors: those of Runtime::join and Runtime::lookup.
  static Result<Client> connect(const NodeOptions& options, bool wait = false);

  /// After the head was lost: waits for the one that takes the cluster over, and talks to it from
  /// then on, of a cancelled job first. Error: `unavailable` if there will be none.
  Status find_next_head(std::uint64_t job);

  /// Tells the observer what a job says until it ends, across heads. Threads: one; it blocks.
  Result<train::JobEnded> follow(std::uint64_t job, train::JobObserver& observer);
  /// Asks for the job's end: now, or as soon as there is a head again; false if there is none now.
  /// Threads: any, while follow() runs.
  bool cancel(std::uint64_t job);
  /// What the user is told of a wish that waits for the next head.
  static std::string cancelled_later(std::uint64_t job);

  /// Sends a request to the job service and waits for the answer.
  template <class Response, class Request>
  Result<Response> ask(Request request, Duration timeout = std::chrono::seconds(5)) {
    caf::scoped_actor self{runtime->system()};
    return ask<Response>(self, std::move(request), timeout);
  }

  /// The same as `self`, who goes on receiving what the service sends it.
  template <class Response, class Request>
  Result<Response> ask(caf::scoped_actor& self, Request request,
                       Duration timeout = std::chrono::seconds(5)) {
    Result<Response> answer{Code::internal, "no answer"};
    self->request(jobs, timeout, std::move(request))
        .receive([&](Response& response) { answer = std::move(response); },
                 [&](caf::error& error) { answer = remoting::from_caf(error); });
    return answer;
  }
};

}  // namespace troupe::tool
