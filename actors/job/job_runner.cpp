#include "actors/job/job_runner.hpp"

#include <algorithm>
#include <future>
#include <optional>

#include <caf/send.hpp>
#include <fmt/format.h>

#include "actors/checkpoint/checkpoint_store.hpp"
#include "actors/job/job_actor.hpp"
#include "actors/job/job_graph.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/graph/deploy.hpp"
#include "runtime/graph/placement.hpp"

namespace troupe::train {
namespace {

/// A job has one placement for all its life.
constexpr std::uint64_t kGeneration = 1;
/// How long an actor may take to be spawned and set up: the first on a node reads the data.
constexpr auto kActorTimeout = std::chrono::seconds(60);

/// The nodes that a job runs on: the first `wanted` (0: all) with slots, in the order of joining,
/// and no more than there are ranks.
Result<std::vector<Member>> choose_nodes(const View& view, std::size_t wanted,
                                         std::uint32_t ranks) {
  std::vector<Member> nodes;
  for (const auto& member : view.members)
    if (member.slots > 0) nodes.push_back(member);
  if (nodes.empty())
    return Error{
        Code::unavailable,
        "no node of the cluster offers slots; start one with `troupe node --head HOST:PORT`"};
  if (wanted > nodes.size())
    return Error{Code::unavailable,
                 fmt::format("the job wants {} nodes and {} are there; start more "
                             "or ask for fewer",
                             wanted, nodes.size())};
  if (wanted > 0) nodes.resize(wanted);
  if (nodes.size() > ranks) nodes.resize(ranks);
  return nodes;
}

/// The checkpoint that a resumed job goes on from.
Result<std::string> newest_checkpoint(const JobConfig& config, JobObserver& observer) {
  CheckpointStore store(config.checkpoint.directory, config.checkpoint.keep);
  TROUPE_ASSIGN(auto found, store.latest());
  for (const auto& damaged : found.damaged) observer.on_notice({damaged});
  return found.entry.path.string();
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
  Result<graph::Deployment> deploy(const std::vector<Member>& nodes, const std::string& resume_from,
                                   const caf::actor& actor);
  Result<JobEnded> follow(const std::vector<Member>& nodes, const std::string& resume_from);

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
  bool followed = false;  // there was a job actor
  Mutex mutex;
  bool cancelled TROUPE_GUARDED_BY(mutex) = false;
  caf::actor job_actor TROUPE_GUARDED_BY(mutex);
};

Result<JobEnded> JobRunner::State::run() {
  TROUPE_TRY(config.validate());
  TROUPE_ASSIGN(auto nodes, choose_nodes(runtime.view(), options.nodes, config.ranks));
  std::string resume_from;
  if (options.resume) {
    TROUPE_ASSIGN(resume_from, newest_checkpoint(config, observer));
  } else {
    TROUPE_TRY(clear_checkpoints(config, observer));
  }
  return follow(nodes, resume_from);
}

Result<graph::Deployment> JobRunner::State::deploy(const std::vector<Member>& nodes,
                                                   const std::string& resume_from,
                                                   const caf::actor& actor) {
  std::vector<graph::NodeOffer> offers;
  for (const auto& node : nodes) offers.push_back(graph::offer_of(node));
  Setup setup;
  setup.job = options.job;
  setup.config = config.to_toml();
  setup.resume_from = resume_from;
  setup.job_actor = actor;
  TROUPE_ASSIGN(auto placement,
                graph::place(*job_graph(config), offers, config.ranks, kGeneration));
  setup.node_of_rank = placement.rank_nodes;
  graph::FunctionSpawner spawner(
      [this](NodeId node, const std::string& type, caf::message arguments) {
        return runtime.spawn_on(node, type, std::move(arguments), kActorTimeout);
      });
  return graph::deploy(*job_graph(config, setup), placement, spawner, runtime.system(),
                       {.answer_timeout = kActorTimeout});
}

Result<JobEnded> JobRunner::State::follow(const std::vector<Member>& nodes,
                                          const std::string& resume_from) {
  std::promise<JobEnded> ended;
  JobActorSetup setup;
  setup.generation = kGeneration;
  setup.started.job = options.job;
  setup.started.name = config.name;
  setup.started.ranks = config.ranks;
  setup.started.nodes = static_cast<std::uint32_t>(nodes.size());
  setup.started.epochs = config.epochs;
  setup.started.global_batch = config.data.batch;
  for (const auto& node : nodes) setup.nodes.push_back({node.node, node.name});
  setup.observer = &observer;
  setup.done = [&ended](JobEnded x) { ended.set_value(std::move(x)); };
  followed = true;
  const auto actor = spawn_job_actor(runtime.system(), std::move(setup));

  const auto subscription =
      runtime.subscribe([actor](const View&, const std::vector<Departure>& departures) {
        for (const auto& x : departures) caf::anon_send(actor, NodeDeparted{x.node, x.reason});
      });
  // One that left before the subscription would be missed.
  for (const auto& node : nodes)
    if (runtime.view().find(node.node) == nullptr)
      caf::anon_send(actor, NodeDeparted{node.node, {Code::unavailable, "it left the cluster"}});
  if (!publish(actor)) caf::anon_send(actor, CancelRequested{});

  auto deployment = deploy(nodes, resume_from, actor);
  if (deployment.ok())
    caf::anon_send(actor, Deployed{deployment->replicas("reducer"), deployment->size()});
  else
    caf::anon_send(actor, DeploymentFailed{deployment.error()});

  JobEnded outcome = ended.get_future().get();
  runtime.unsubscribe(subscription);
  if (deployment.ok()) (void)deployment->undeploy();  // those of a lost node are gone already
  publish({});
  if (outcome.code != 0) return Error{static_cast<Code>(outcome.code), outcome.message};
  return outcome;
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
