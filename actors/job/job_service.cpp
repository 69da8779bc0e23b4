#include "actors/job/job_service.hpp"

#include <deque>
#include <map>
#include <optional>
#include <thread>

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <fmt/format.h>

#include "actors/config/job_config.hpp"
#include "actors/job/job_runner.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {
namespace {

struct QueuedJob {
  std::uint64_t job = 0;
  JobConfig config;
  std::uint32_t nodes = 0;
  bool resume = false;
};

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

/// Runs queued jobs one after the other on a thread of its own.
///
/// Threads: any; the destructor waits for the running job, which it cancels.
class JobQueue {
public:
  explicit JobQueue(Runtime& runtime) : runtime_(runtime) {}
  ~JobQueue() { stop(); }

  void start(caf::actor service) {
    thread_ = std::thread([this, service = std::move(service)] { work(service); });
  }

  void push(QueuedJob job) {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(job));
    changed_.notify_all();
  }

  /// Takes a waiting job out, or cancels the running one. False if there is no such job.
  bool cancel(std::uint64_t job) {
    MutexLock lock(mutex_);
    if (std::erase_if(waiting_, [job](const QueuedJob& x) { return x.job == job; }) > 0)
      return true;
    if (running_ == nullptr || running_job_ != job) return false;
    running_->cancel();
    return true;
  }

  void stop() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      waiting_.clear();
      if (running_ != nullptr) running_->cancel();
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

private:
  std::optional<QueuedJob> next() {
    MutexLock lock(mutex_);
    while (!stopping_ && waiting_.empty()) changed_.wait(mutex_);
    if (stopping_) return std::nullopt;
    QueuedJob job = std::move(waiting_.front());
    waiting_.pop_front();
    return job;
  }

  void work(const caf::actor& service) {
    while (auto job = next()) {
      Forward forward(service, job->job);
      JobRunner runner(runtime_, std::move(job->config),
                       {.job = job->job, .resume = job->resume, .nodes = job->nodes}, forward);
      {
        MutexLock lock(mutex_);
        running_ = &runner;
        running_job_ = job->job;
        if (stopping_) runner.cancel();
      }
      (void)runner.run();  // its end was told to the observer
      MutexLock lock(mutex_);
      running_ = nullptr;
    }
  }

  Runtime& runtime_;
  std::thread thread_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<QueuedJob> waiting_ TROUPE_GUARDED_BY(mutex_);
  JobRunner* running_ TROUPE_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t running_job_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool stopping_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace
}  // namespace troupe::train

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::JobStarted>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::StepFinished>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::EpochFinished>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::CheckpointWritten>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::Notice>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::train::Said<troupe::train::JobEnded>)

namespace troupe::train {
namespace {

struct ServiceState {
  std::map<std::uint64_t, JobRecord> jobs;
  std::map<std::uint64_t, std::vector<caf::actor>> watchers;
  std::uint64_t last_job = 0;
};

using ServiceActor = caf::stateful_actor<ServiceState>;

Error no_such_job(std::uint64_t job) {
  return Error{Code::not_found, fmt::format("there is no job {}; `troupe status` lists them", job)};
}

/// Updates the record and tells the watchers.
template <class Event>
auto on(ServiceActor* self, void (*update)(JobRecord&, const Event&)) {
  return [self, update](const Said<Event>& said) {
    update(self->state.jobs[said.job], said.event);
    auto& watchers = self->state.watchers[said.job];
    for (const auto& watcher : watchers) self->send(watcher, said.event);
    if constexpr (std::is_same_v<Event, JobEnded>) watchers.clear();
  };
}

void ended(JobRecord& record, const JobEnded& event) {
  const auto code = static_cast<Code>(event.code);
  record.state = code == Code::ok ? "done" : code == Code::cancelled ? "cancelled" : "failed";
  record.message = code == Code::ok ? event.path : event.message;
  record.step = event.steps;
}

caf::result<std::uint64_t> submit(ServiceActor* self, JobQueue& queue, const SubmitJob& request) {
  auto config = parse_job(request.config);
  if (!config.ok()) return remoting::to_caf(config.error());
  const std::uint64_t job = ++self->state.last_job;
  auto& record = self->state.jobs[job];
  record.job = job;
  record.name = config->name;
  record.state = "waiting";
  queue.push({job, std::move(*config), request.nodes, request.resume});
  return job;
}

caf::result<JobRecord> watch(ServiceActor* self, std::uint64_t job) {
  auto found = self->state.jobs.find(job);
  if (found == self->state.jobs.end()) return remoting::to_caf(no_such_job(job));
  const auto watcher = caf::actor_cast<caf::actor>(self->current_sender());
  const auto& record = found->second;
  if (record.state == "waiting" || record.state == "running") {
    self->state.watchers[job].push_back(watcher);
    self->monitor(watcher);
  } else {
    const Code code = record.state == "done"        ? Code::ok
                      : record.state == "cancelled" ? Code::cancelled
                                                    : Code::internal;
    self->send(
        watcher,
        JobEnded{
            static_cast<std::uint16_t>(code), record.message, record.step, record.message, {}});
  }
  return record;
}

caf::result<JobRecord> cancel(ServiceActor* self, JobQueue& queue, std::uint64_t job) {
  auto found = self->state.jobs.find(job);
  if (found == self->state.jobs.end()) return remoting::to_caf(no_such_job(job));
  if (found->second.state == "waiting" && queue.cancel(job))
    self->send(self, Said<JobEnded>{job, JobEnded{static_cast<std::uint16_t>(Code::cancelled),
                                                  "cancelled before it started",
                                                  0,
                                                  {},
                                                  {}}});
  else
    queue.cancel(job);
  return found->second;
}

caf::behavior service(ServiceActor* self, JobQueue* queue) {
  self->set_down_handler([self](caf::down_msg& down) {
    for (auto& [job, watchers] : self->state.watchers)
      std::erase_if(watchers, [&](const caf::actor& x) { return x.address() == down.source; });
  });
  return {
      [=](const SubmitJob& x) { return submit(self, *queue, x); },
      [=](const WatchJob& x) { return watch(self, x.job); },
      [=](const CancelJob& x) { return cancel(self, *queue, x.job); },
      [=](const ListJobs&) {
        JobTable table;
        for (const auto& [job, record] : self->state.jobs) table.jobs.push_back(record);
        return table;
      },
      on<JobStarted>(self,
                     [](JobRecord& record, const JobStarted& x) {
                       record.state = "running";
                       record.step = x.first_step;
                       record.steps = x.steps_per_epoch * x.epochs;
                     }),
      on<StepFinished>(self,
                       [](JobRecord& record, const StepFinished& x) {
                         record.step = x.step + 1;
                         record.loss = x.loss;
                       }),
      on<EpochFinished>(self,
                        [](JobRecord& record, const EpochFinished& x) {
                          record.test_accuracy = x.test_accuracy;
                        }),
      on<CheckpointWritten>(self, [](JobRecord&, const CheckpointWritten&) {}),
      on<Notice>(self, [](JobRecord& record, const Notice& x) { record.message = x.text; }),
      on<JobEnded>(self, ended),
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
  auto state = std::make_unique<State>(runtime);
  state->actor = runtime.system().spawn(service, &state->queue);
  if (auto status = runtime.register_name(kJobServiceName, state->actor); !status.ok()) {
    caf::anon_send_exit(state->actor, caf::exit_reason::user_shutdown);
    return std::move(status).error();
  }
  state->queue.start(state->actor);
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
