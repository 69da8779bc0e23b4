#include "runtime/graph/deploy.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>
#include <fmt/format.h>

#include "runtime/base/mutex.hpp"
#include "runtime/graph/messages.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::graph {

namespace {

/// The answers of a Spawner, from whatever threads.
class Spawned {
public:
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // actor, replica
  using All = std::map<Place, Result<caf::actor>>;

  void expect() {
    MutexLock lock(mutex_);
    ++open_;
  }
  void add(Place place, Result<caf::actor> actor) {
    MutexLock lock(mutex_);
    answers_.emplace(place, std::move(actor));
    if (--open_ == 0) answered_.notify_all();
  }
  All wait() {
    MutexLock lock(mutex_);
    while (open_ != 0) answered_.wait(mutex_);
    return std::move(answers_);
  }

private:
  Mutex mutex_;
  CondVar answered_;
  std::size_t open_ TROUPE_GUARDED_BY(mutex_) = 0;
  All answers_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace

/// The steps of deploy(), on a deployment that ends what it has when one of them fails.
class Deployer {
public:
  Deployer(const Graph& graph, const Placement& placement, caf::actor_system& system,
           DeployOptions options)
      : graph_(graph),
        placement_(placement),
        options_(options),
        self_(system),
        deployment_(system, options) {}

  Result<Deployment> run(Spawner& spawner) {
    TROUPE_TRY(check());
    TROUPE_TRY(spawn_all(spawner));
    TROUPE_TRY(connect_all());
    TROUPE_TRY(start_all());
    return std::move(deployment_);
  }

private:
  struct Question {
    std::uint32_t actor;
    std::uint32_t replica;
    caf::message message;
  };

  Status check() const {
    if (placement_.replicas.size() == graph_.actors().size() &&
        placement_.pairs.size() == graph_.connections().size())
      return {};
    return {
        Code::invalid_argument,
        fmt::format("the placement is not one of graph '{}'; place() this graph", graph_.name())};
  }

  std::string describe(std::uint32_t actor, std::uint32_t replica) const {
    const NodeOffer& node = placement_.node_of(actor, replica);
    return fmt::format("actor '{}' replica {} on node '{}'", graph_.actors()[actor].spec.name,
                       replica, node.name.empty() ? short_name(node.node) : node.name);
  }

  Error failure(std::uint32_t actor, std::uint32_t replica, const char* what,
                const Error& why) const {
    return {why.code, fmt::format("graph '{}': {} {}: {}", graph_.name(), describe(actor, replica),
                                  what, why.message)};
  }

  Status spawn_all(Spawner& spawner) {
    const auto spawned = std::make_shared<Spawned>();
    for (std::uint32_t a = 0; a < graph_.actors().size(); ++a) {
      const ActorSpec& spec = graph_.actors()[a].spec;
      for (std::uint32_t r = 0; r < placement_.replicas[a].size(); ++r) {
        const Replica replica = replica_of(graph_, placement_, a, r);
        auto arguments = spec.arguments ? spec.arguments(replica) : caf::make_message();
        spawned->expect();
        spawner.spawn(replica.node, spec.type, std::move(arguments),
                      [spawned, a, r](Result<caf::actor> actor) {
                        spawned->add({a, r}, std::move(actor));
                      });
      }
    }
    Status status;
    for (const auto& spec : graph_.actors()) deployment_.groups_.push_back({spec.spec.name, {}});
    for (auto& [place, actor] : spawned->wait()) {
      const auto [a, r] = place;
      if (actor.ok() && *actor == nullptr)
        actor = Error{Code::internal, "the spawner returned no actor"};
      if (actor.ok())
        deployment_.groups_[a].replicas.push_back(std::move(actor).value());
      else if (status.ok())
        status = failure(a, r, "could not be started", actor.error());
    }
    return status;
  }

  const caf::actor& actor(std::uint32_t a, std::uint32_t replica) const {
    return deployment_.groups_[a].replicas[replica];
  }

  Status connect_all() {
    std::vector<Question> questions;
    for (std::uint32_t e = 0; e < graph_.connections().size(); ++e) {
      const auto& edge = graph_.connections()[e];
      const auto& pairs = placement_.pairs[e];
      std::vector<std::vector<Peer>> producers(placement_.replicas[edge.to.actor].size());
      for (std::uint32_t p = 0; p < pairs.size(); ++p) {
        std::vector<Peer> consumers;
        for (auto c : pairs[p]) {
          consumers.push_back({c, actor(edge.to.actor, c)});
          producers[c].push_back({p, actor(edge.from.actor, p)});
        }
        const auto& port = graph_.actors()[edge.from.actor].outputs[edge.from.port];
        questions.push_back(
            {edge.from.actor, p, connected(port.name, true, e, p, std::move(consumers))});
      }
      const auto& port = graph_.actors()[edge.to.actor].inputs[edge.to.port];
      for (std::uint32_t c = 0; c < producers.size(); ++c)
        questions.push_back(
            {edge.to.actor, c, connected(port.name, false, e, c, std::move(producers[c]))});
    }
    return ask(questions, "could not be connected");
  }

  caf::message connected(const std::string& port, bool output, std::uint32_t e,
                         std::uint32_t replica, std::vector<Peer> peers) const {
    const Edge& edge = graph_.connections()[e].edge;
    return caf::make_message(
        Connected{port, output, e, edge.pattern, edge.capacity, replica, std::move(peers)});
  }

  /// Consumers before producers is not needed: all are connected by now.
  Status start_all() {
    std::vector<Question> questions;
    for (std::uint32_t a = 0; a < graph_.actors().size(); ++a)
      for (std::uint32_t r = 0; r < placement_.replicas[a].size(); ++r)
        questions.push_back({a, r, caf::make_message(Start{})});
    return ask(questions, "could not start");
  }

  /// Asks all at once, then waits for every answer; the first error counts.
  Status ask(const std::vector<Question>& questions, const char* what) {
    using Answer = decltype(self_->request(caf::actor{}, caf::duration{}, caf::message{}));
    std::vector<Answer> answers;
    answers.reserve(questions.size());
    for (const auto& q : questions)
      answers.push_back(self_->request(actor(q.actor, q.replica),
                                       caf::duration{options_.answer_timeout}, q.message));
    Status status;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const Question& q = questions[i];
      answers[i].receive([] {},
                         [&](const caf::error& error) {
                           if (status.ok())
                             status = failure(q.actor, q.replica, what, remoting::from_caf(error));
                         });
    }
    return status;
  }

  const Graph& graph_;
  const Placement& placement_;
  const DeployOptions options_;
  caf::scoped_actor self_;
  Deployment deployment_;
};

Deployment::Deployment(Deployment&& other) noexcept
    : system_(other.system_), options_(other.options_), groups_(std::exchange(other.groups_, {})) {}

Deployment& Deployment::operator=(Deployment&& other) noexcept {
  if (this != &other) {
    (void)undeploy();
    system_ = other.system_;
    options_ = other.options_;
    groups_ = std::exchange(other.groups_, {});
  }
  return *this;
}

Deployment::~Deployment() {
  (void)undeploy();
}

const std::vector<caf::actor>& Deployment::replicas(const std::string& actor) const {
  static const std::vector<caf::actor> kNone;
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const Group& group) { return group.actor == actor; });
  return found == groups_.end() ? kNone : found->replicas;
}

std::size_t Deployment::size() const {
  std::size_t count = 0;
  for (const auto& group : groups_) count += group.replicas.size();
  return count;
}

Status Deployment::undeploy() {
  if (size() == 0) return {};
  caf::scoped_actor self(*system_);
  std::map<caf::actor_addr, std::string> running;
  for (const auto& group : groups_)
    for (std::size_t r = 0; r < group.replicas.size(); ++r) {
      running.emplace(group.replicas[r].address(), fmt::format("'{}' replica {}", group.actor, r));
      self->monitor(group.replicas[r]);
    }
  const auto end_all = [&](caf::exit_reason reason) {
    for (const auto& group : groups_)
      for (const auto& actor : group.replicas)
        if (running.contains(actor.address())) caf::anon_send_exit(actor, reason);
  };
  const auto wait = [&] {
    bool in_time = true;
    while (in_time && !running.empty())
      self->receive([&](const caf::down_msg& down) { running.erase(down.source); },
                    caf::after(options_.stop_timeout) >> [&] { in_time = false; });
  };

  end_all(caf::exit_reason::user_shutdown);
  wait();
  Status status;
  if (!running.empty()) {
    std::string names;
    for (const auto& [address, name] : running) names += (names.empty() ? "" : ", ") + name;
    status = {Code::deadline_exceeded,
              fmt::format("these actors did not end in time and were killed: {}", names)};
    end_all(caf::exit_reason::kill);
    wait();
  }
  groups_.clear();
  return status;
}

Result<Deployment> deploy(const Graph& graph, const Placement& placement, Spawner& spawner,
                          caf::actor_system& system, DeployOptions options) {
  return Deployer(graph, placement, system, options).run(spawner);
}

}  // namespace troupe::graph
