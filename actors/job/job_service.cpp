#include "actors/job/job_service.hpp"

#include <map>
#include <utility>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <fmt/format.h>

#include "actors/config/job_config.hpp"
#include "actors/job/job_queue.hpp"
#include "actors/job/job_store.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {
namespace {

/// From the queue's thread to the service actor: job `job` says `event`. Local only.
template <class Event>
struct Said {
  std::uint64_t job = 0;
  Event event;
};

/// Passes what a job says to the service actor.
class Forward final : public JobObserver {
public:
  Forward(caf::actor service, std::uint64_t job) : service_(std::move(service)), job_(job) {}
  void on_started(const JobStarted& x) override { say(x); }
  void on_step(const StepFinished& x) override { say(x); }
  void on_epoch(const EpochFinished& x) override { say(x); }
  void on_generation(const GenerationBegun& x) override { say(x); }
  void on_checkpoint(const CheckpointWritten& x) override { say(x); }
  void on_notice(const Notice& x) override { say(x); }
  void on_ended(const JobEnded& x) override { say(x); }

private:
  template <class Event>
  void say(const Event& event) {
    caf::anon_send(service_, Said<Event>{job_, event});
  }
  caf::actor service_;
  std::uint64_t job_;
};

}  // namespace
}  // namespace troupe::train

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::JobStarted>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::StepFinished>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::EpochFinished>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::GenerationBegun>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::CheckpointWritten>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::Notice>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::JobEnded>)

namespace troupe::train {
namespace {

/// Of jobs that are over so many are kept.
constexpr std::size_t kMostOver = 1000;

struct ServiceState {
  std::map<std::uint64_t, KnownJob> jobs;
  std::map<std::uint64_t, std::vector<caf::actor>> watchers;
  std::uint64_t last_job = 0;
};

using ServiceActor = caf::stateful_actor<ServiceState>;

Error no_such_job(std::uint64_t job) {
  return Error{Code::not_found, fmt::format("there is no job {}; `troupe status` lists them", job)};
}

/// Updates what is known, writes it down and tells the watchers.
template <class Event>
auto on(ServiceActor* self, JobStore store, void (*update)(KnownJob&, const Event&)) {
  return [self, store, update](const Said<Event>& said) {
    auto& job = self->state.jobs[said.job];
    update(job, said.event);
    store.update(job);
    auto& watchers = self->state.watchers[said.job];
    for (const auto& watcher : watchers) self->send(watcher, said.event);
    if constexpr (std::is_same_v<Event, JobEnded>) watchers.clear();
  };
}

void ended(KnownJob& job, const JobEnded& event) {
  const auto code = static_cast<Code>(event.code);
  auto& record = job.record;
  record.state = code == Code::ok ? "done" : code == Code::cancelled ? "cancelled" : "failed";
  record.message = code == Code::ok ? event.path : event.message;
  record.step = event.steps;
  record.sha256 = event.sha256;
  record.code = event.code;
}

void started(KnownJob& job, const JobStarted& event) {
  job.begun = true;
  job.first_step = event.first_step;
  job.epochs =
      std::max(job.epochs, event.first_step / std::max<std::uint64_t>(1, event.steps_per_epoch));
  job.record.state = "running";
  job.record.step = std::max(job.record.step, event.first_step);
  job.record.steps = event.steps_per_epoch * event.epochs;
}

QueuedJob queued(const KnownJob& job, JobConfig config) {
  QueuedJob queued;
  queued.job = job.record.job;
  queued.config = std::move(config);
  queued.nodes = job.request.nodes;
  queued.resume = job.request.resume;
  return queued;
}

caf::result<std::uint64_t> submit(ServiceActor* self, JobQueue& queue, JobStore store,
                                  const SubmitJob& request) {
  auto config = parse_job(request.config);
  if (!config.ok()) return remoting::to_caf(config.error());
  if (auto status = config->check_nodes(request.nodes); !status.ok())
    return remoting::to_caf(status.error());
  auto& state = self->state;
  const std::uint64_t number = ++state.last_job;
  KnownJob job;
  job.request = request;
  job.record.job = number;
  job.record.name = config->name;
  job.record.state = "waiting";
  if (auto status = store.add(job); !status.ok()) return remoting::to_caf(status.error());
  queue.push(queued(job, std::move(*config)));
  state.jobs.emplace(number, std::move(job));
  while (state.jobs.size() > kMostOver && state.jobs.begin()->second.over()) {
    store.remove(state.jobs.begin()->first);
    state.jobs.erase(state.jobs.begin());
  }
  return number;
}

caf::result<JobRecord> watch(ServiceActor* self, std::uint64_t number) {
  auto found = self->state.jobs.find(number);
  if (found == self->state.jobs.end()) return remoting::to_caf(no_such_job(number));
  const auto watcher = caf::actor_cast<caf::actor>(self->current_sender());
  const auto& record = found->second.record;
  if (!found->second.over()) {
    self->state.watchers[number].push_back(watcher);
    self->monitor(watcher);
  } else {
    self->send(watcher,
               JobEnded{record.code, record.message, record.step, record.message, record.sha256});
  }
  return record;
}

caf::result<JobRecord> cancel(ServiceActor* self, JobQueue& queue, JobStore store,
                              std::uint64_t number) {
  auto found = self->state.jobs.find(number);
  if (found == self->state.jobs.end()) return remoting::to_caf(no_such_job(number));
  auto& job = found->second;
  job.cancelled = true;
  store.update(job);
  if (queue.cancel(number))
    self->send(self, Said<JobEnded>{number, JobEnded{static_cast<std::uint16_t>(Code::cancelled),
                                                     "cancelled before it started",
                                                     0,
                                                     {},
                                                     {}}});
  return job.record;
}

/// Goes on with what another head has left.
void restore(ServiceActor* self, JobQueue& queue, JobStore store,
             std::map<std::uint64_t, KnownJob> jobs, std::uint64_t term) {
  for (auto& [number, job] : jobs) {
    self->state.last_job = std::max(self->state.last_job, number);
    auto& known = self->state.jobs[number] = std::move(job);
    if (known.over()) continue;
    auto config = parse_job(known.request.config);
    if (!config.ok()) {
      ended(known, {static_cast<std::uint16_t>(config.code()), config.error().message, 0, {}, {}});
      store.update(known);
      continue;
    }
    auto next = queued(known, std::move(*config));
    Inherited inherited;
    inherited.term = term;
    inherited.begun = known.begun;
    inherited.first_step = known.first_step;
    inherited.steps = known.record.step;
    inherited.epochs = known.epochs;
    inherited.cancelled = known.cancelled;
    next.inherited = std::move(inherited);
    queue.push(std::move(next));
  }
}

caf::behavior service(ServiceActor* self, JobQueue* queue, JobStore store,
                      std::map<std::uint64_t, KnownJob> jobs, std::uint64_t term) {
  self->set_down_handler([self](caf::down_msg& down) {
    for (auto& [job, watchers] : self->state.watchers)
      std::erase_if(watchers, [&](const caf::actor& x) { return x.address() == down.source; });
  });
  restore(self, *queue, store, std::move(jobs), term);
  return {
      [=](const SubmitJob& x) { return submit(self, *queue, store, x); },
      [=](const WatchJob& x) { return watch(self, x.job); },
      [=](const CancelJob& x) { return cancel(self, *queue, store, x.job); },
      [=](const ListJobs&) {
        JobTable table;
        for (const auto& [number, job] : self->state.jobs) table.jobs.push_back(job.record);
        return table;
      },
      on<JobStarted>(self, store, started),
      on<StepFinished>(self, store,
                       [](KnownJob& job, const StepFinished& x) {
                         job.record.step = x.step + 1;
                         job.record.loss = x.loss;
                       }),
      on<EpochFinished>(self, store,
                        [](KnownJob& job, const EpochFinished& x) {
                          job.record.test_accuracy = x.test_accuracy;
                          job.epochs = x.epoch + 1;
                        }),
      on<GenerationBegun>(self, store, [](KnownJob&, const GenerationBegun&) {}),
      on<CheckpointWritten>(self, store, [](KnownJob&, const CheckpointWritten&) {}),
      on<Notice>(self, store, [](KnownJob& job, const Notice& x) { job.record.message = x.text; }),
      on<JobEnded>(self, store, ended),
  };
}

}  // namespace

void add_job_message_types(caf::actor_system_config& config) {
  config.add_message_type<SubmitJob>("troupe::SubmitJob");
  config.add_message_type<WatchJob>("troupe::WatchJob");
  config.add_message_type<CancelJob>("troupe::CancelJob");
  config.add_message_type<ListJobs>("troupe::ListJobs");
  config.add_message_type<JobRecord>("troupe::JobRecord");
  config.add_message_type<JobTable>("troupe::JobTable");
  config.add_message_type<JobStarted>("troupe::JobStarted");
  config.add_message_type<StepFinished>("troupe::StepFinished");
  config.add_message_type<EpochFinished>("troupe::EpochFinished");
  config.add_message_type<GenerationBegun>("troupe::GenerationBegun");
  config.add_message_type<CheckpointWritten>("troupe::CheckpointWritten");
  config.add_message_type<Notice>("troupe::Notice");
  config.add_message_type<JobEnded>("troupe::JobEnded");
}

struct JobService::State {
  explicit State(Runtime& r) : runtime(r), queue(r) {}
  Runtime& runtime;
  JobQueue queue;
  caf::actor actor;
};

JobService::JobService(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<JobService>> JobService::start(Runtime& runtime) {
  const JobStore store(runtime.store());
  TROUPE_ASSIGN(auto jobs, store.read());
  auto state = std::make_unique<State>(runtime);
  state->actor =
      runtime.system().spawn(service, &state->queue, store, std::move(jobs), runtime.term());
  if (auto status = runtime.register_name(kJobServiceName, state->actor); !status.ok()) {
    caf::anon_send_exit(state->actor, caf::exit_reason::user_shutdown);
    return std::move(status).error();
  }
  state->queue.start(
      [actor = state->actor](std::uint64_t job) { return std::make_unique<Forward>(actor, job); });
  return std::unique_ptr<JobService>(new JobService(std::move(state)));
}

JobService::~JobService() {
  state_->queue.stop();
  caf::scoped_actor self{state_->runtime.system()};
  self->send_exit(state_->actor, caf::exit_reason::user_shutdown);
  self->wait_for(state_->actor);
}

const caf::actor& JobService::actor() const {
  return state_->actor;
}

}  // namespace troupe::train
