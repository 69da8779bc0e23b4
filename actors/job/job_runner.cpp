#include "actors/job/job_runner.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include <caf/send.hpp>
#include <fmt/format.h>

#include "actors/checkpoint/checkpoint_store.hpp"
#include "actors/job/job_actor.hpp"
#include "actors/job/job_graph.hpp"
#include "actors/job/job_store.hpp"
#include "actors/job/register.hpp"
#include "actors/job/takeover.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/graph/deploy.hpp"
#include "runtime/graph/placement.hpp"

namespace troupe::train {
namespace {

/// How long an actor may take to be spawned.
constexpr auto kActorTimeout = std::chrono::seconds(60);
/// And to be set up: the first on a node lists, or reads, all of the data.
constexpr auto kSetUpTimeout = std::chrono::minutes(10);

/// The nodes with slots that are not about to leave, in the order of joining.
std::vector<JobNode> nodes_in(const View& view) {
  std::vector<JobNode> nodes;
  for (const auto& member : view.members)
    if (member.slots > 0 && !member.draining) nodes.push_back({member.node, member.name});
  return nodes;
}

/// The checkpoint that a resumed job goes on from.
Result<std::string> newest_checkpoint(const JobConfig& config, JobObserver& observer) {
  CheckpointStore store(config.checkpoint.directory, config.checkpoint.keep);
  TROUPE_ASSIGN(auto found, store.latest());
  for (const auto& damaged : found.damaged) observer.on_notice({damaged});
  return found.entry.path.string();
}

/// The newest checkpoint by its name, unread; none if there is none or the folder cannot be read.
std::optional<CheckpointWritten> find_checkpoint(const JobConfig& config) {
  const auto entries = CheckpointStore(config.checkpoint.directory, config.checkpoint.keep).list();
  if (!entries.ok() || entries->empty()) return std::nullopt;
  return CheckpointWritten{entries->front().step, entries->front().path.string()};
}

/// A job that starts afresh leaves nothing there that a later --resume could mistake for its own.
Status clear_checkpoints(const JobConfig& config, JobObserver& observer) {
  CheckpointStore store(config.checkpoint.directory, config.checkpoint.keep);
  TROUPE_ASSIGN(auto entries, store.list());
  if (!entries.empty())
    observer.on_notice(
        {fmt::format("starting afresh: {} checkpoint{} of an earlier run in {} {} removed",
                     entries.size(), entries.size() == 1 ? "" : "s",
                     config.checkpoint.directory.string(), entries.size() == 1 ? "is" : "are")});
  return store.clear();
}

}  // namespace

struct JobRunner::State {
  State(Runtime& r, JobConfig c, Options o, JobObserver& x)
      : runtime(r), config(std::move(c)), options(o), observer(x) {}

  Result<JobEnded> run();
  Result<JobEnded> follow(const std::string& resume_from);
  Result<graph::Deployment> deploy(std::uint64_t generation, const std::vector<JobNode>& nodes,
                                   const std::string& resume_from, const caf::actor& actor);

  /// Ends what another head deployed for this generation.
  void end_found(std::uint64_t generation) {
    if (const auto at = found.actors.find(generation); at != found.actors.end()) {
      for (const auto& x : at->second) caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
      found.actors.erase(at);
    }
  }

  void warm_up(const JobNode& node, const caf::actor& actor);

  /// What all of the job's actors are spawned with.
  Setup setup_for(const caf::actor& actor) const {
    Setup setup;
    setup.job = options.job;
    setup.config = config.to_toml();
    setup.job_actor = actor;
    return setup;
  }

  void queue(std::function<void()> task) {
    MutexLock lock(mutex);
    tasks.push_back(std::move(task));
    queued.notify_all();
  }
  std::function<void()> next_task() {
    MutexLock lock(mutex);
    while (tasks.empty()) queued.wait(mutex);
    auto task = std::move(tasks.front());
    tasks.pop_front();
    return task;
  }

  /// Makes the job actor known to cancel(); false if it was cancelled before.
  bool publish(const caf::actor& actor) {
    MutexLock lock(mutex);
    job_actor = actor;
    return !cancelled;
  }

  Runtime& runtime;
  JobConfig config;
  Options options;
  JobObserver& observer;
  bool followed = false;                                   // there was a job actor
  std::atomic<bool> begun = false;                         // its first step, under whatever head
  std::map<std::uint64_t, graph::Deployment> deployments;  // by generation
  FoundJob found;                                          // what another head deployed

  Mutex mutex;
  CondVar queued;
  std::deque<std::function<void()>> tasks TROUPE_GUARDED_BY(mutex);
  bool cancelled TROUPE_GUARDED_BY(mutex) = false;
  caf::actor job_actor TROUPE_GUARDED_BY(mutex);
};

Result<JobEnded> JobRunner::State::run() {
  TROUPE_TRY(config.validate());
  TROUPE_TRY(config.check_nodes(options.nodes));
  begun = options.inherited && options.inherited->begun;
  std::string resume_from;
  if (options.resume && !begun) {
    TROUPE_ASSIGN(resume_from, newest_checkpoint(config, observer));
  }
  return follow(resume_from);
}

Result<graph::Deployment> JobRunner::State::deploy(std::uint64_t generation,
                                                   const std::vector<JobNode>& nodes,
                                                   const std::string& resume_from,
                                                   const caf::actor& actor) {
  const View view = runtime.view();
  std::vector<graph::NodeOffer> offers;
  for (const auto& node : nodes) {
    const auto* member = view.find(node.node);
    if (member == nullptr)
      return Error{Code::unavailable, fmt::format("node '{}' has left the cluster", node.name)};
    offers.push_back(graph::offer_of(*member));
  }
  auto setup = setup_for(actor);
  setup.resume_from = resume_from;
  setup.outlives_head = runtime.store() != nullptr;
  TROUPE_ASSIGN(auto placement, graph::place(*job_graph(config), offers, config.ranks, generation));
  setup.node_of_rank = placement.rank_nodes;
  graph::FunctionSpawner spawner(
      [this](NodeId node, const std::string& type, caf::message arguments, auto done) {
        runtime.spawn_on_async(node, type, std::move(arguments), kActorTimeout, std::move(done));
      });
  return graph::deploy(*job_graph(config, setup), placement, spawner, runtime.system(),
                       {.answer_timeout = kSetUpTimeout});
}

/// A node that has come gets ready for the job while the others go on; then the job hears of it.
/// One that cannot work for it is left out.
void JobRunner::State::warm_up(const JobNode& node, const caf::actor& actor) {
  runtime.spawn_on_async(node.node, kWarmerType, caf::make_message(setup_for(actor)), kActorTimeout,
                         [actor, node](Result<caf::actor> warmer) {
                           // One that is lost already will be missed by nobody.
                           if (warmer.ok()) caf::anon_send(actor, NodeWarming{node, *warmer});
                         });
}

Result<JobEnded> JobRunner::State::follow(const std::string& resume_from) {
  std::optional<JobEnded> outcome;
  caf::actor actor;
  JobActorSetup setup;
  auto& machine = setup.machine;
  machine.started.job = options.job;
  machine.started.name = config.name;
  machine.started.ranks = config.ranks;
  machine.started.epochs = config.epochs;
  machine.started.global_batch = config.data.batch;
  machine.min_nodes = config.elastic.min_nodes;
  machine.max_nodes = config.elastic.max_nodes;
  if (options.nodes > 0)
    machine.max_nodes =
        machine.max_nodes == 0
            ? static_cast<std::uint32_t>(options.nodes)
            : std::min(machine.max_nodes, static_cast<std::uint32_t>(options.nodes));
  machine.wait = std::chrono::seconds(config.elastic.wait_seconds);
  machine.stragglers = {config.elastic.straggler_factor, config.elastic.drop_straggler_factor};
  setup.observer = &observer;
  // Not before data and nodes were found to be right.
  setup.starting = [this, &resume_from]() -> Status {
    begun = true;
    if (resume_from.empty()) TROUPE_TRY(clear_checkpoints(config, observer));
    // The next head must not begin it afresh, however soon this one is lost. Without the store this
    // one is lost, too.
    (void)JobStore(runtime.store()).begin(options.job);
    return {};
  };
  setup.deploy = [&](std::uint64_t generation, std::vector<JobNode> nodes) {
    queue([&, generation, nodes = std::move(nodes)] {
      // Once it has begun, new nodes get their state from others.
      auto made = deploy(generation, nodes, begun ? std::string() : resume_from, actor);
      if (!made.ok()) return caf::anon_send(actor, DeploymentFailed{generation, made.error()});
      caf::anon_send(actor, Deployed{generation, made->replicas("reducer"), made->size()});
      deployments.emplace(generation, std::move(*made));
    });
  };
  setup.discard = [&](std::uint64_t generation) {
    // Those of a lost node are gone already.
    queue([&, generation] {
      deployments.erase(generation);
      end_found(generation);
    });
  };
  setup.done = [&](JobEnded x) { queue([&, x = std::move(x)] { outcome = x; }); };
  followed = true;
  const View before = runtime.view();
  setup.nodes = nodes_in(before);
  if (options.inherited) {
    auto inherited = *options.inherited;
    found = find_job(runtime, before, options.job, inherited);
    if (begun) inherited.checkpoint = find_checkpoint(config);
    std::vector<std::uint64_t> others;
    for (const auto& [generation, actors] : found.actors)
      if (generation != inherited.generation) others.push_back(generation);
    for (const auto generation : others) end_found(generation);
    setup.found = found;
    setup.inherited = std::move(inherited);
  }
  auto known = setup.nodes;
  actor = spawn_job_actor(runtime.system(), std::move(setup));
  const auto subscription = runtime.subscribe(
      [this, &actor, known](const View& view, const std::vector<Departure>& departures) mutable {
        for (const auto& x : departures) caf::anon_send(actor, NodeDeparted{x.node, x.reason});
        for (const auto& member : view.members)
          if (member.draining) caf::anon_send(actor, NodeDraining{member.node});
        for (auto& node : nodes_in(view)) {
          if (std::find(known.begin(), known.end(), node) != known.end()) continue;
          known.push_back(node);
          warm_up(node, actor);
        }
      });
  // What happened before the subscription would be missed.
  const View view = runtime.view();
  for (const auto& node : known)
    if (view.find(node.node) == nullptr)
      caf::anon_send(actor, NodeDeparted{node.node, {Code::unavailable, "it left the cluster"}});
  for (const auto& member : view.members)
    if (member.draining) caf::anon_send(actor, NodeDraining{member.node});
  for (const auto& node : nodes_in(view))
    if (std::find(known.begin(), known.end(), node) == known.end()) warm_up(node, actor);
  if (!publish(actor)) caf::anon_send(actor, CancelRequested{});

  while (!outcome) next_task()();
  runtime.unsubscribe(subscription);
  deployments.clear();
  while (!found.actors.empty()) end_found(found.actors.begin()->first);
  publish({});
  if (outcome->code != 0) return Error{static_cast<Code>(outcome->code), outcome->message};
  return *outcome;
}

JobRunner::JobRunner(Runtime& runtime, JobConfig config, Options options, JobObserver& observer)
    : state_(std::make_unique<State>(runtime, std::move(config), options, observer)) {}

JobRunner::~JobRunner() = default;

Result<JobEnded> JobRunner::run() {
  auto outcome = state_->run();
  // What went wrong before there was a job actor was told to nobody yet.
  if (!outcome.ok() && !state_->followed)
    state_->observer.on_ended(
        {static_cast<std::uint16_t>(outcome.code()), outcome.error().message, 0, {}, {}});
  return outcome;
}

void JobRunner::cancel() {
  MutexLock lock(state_->mutex);
  state_->cancelled = true;
  if (state_->job_actor) caf::anon_send(state_->job_actor, CancelRequested{});
}

}  // namespace troupe::train
