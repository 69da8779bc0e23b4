#include "actors/job/job_actor.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <fmt/format.h>

#include "actors/train/messages.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {
namespace {

using namespace std::chrono_literals;

/// How long survivors may take to halt, and one of them to write its checkpoint.
constexpr auto kHaltTimeout = 10s;
constexpr auto kSaveTimeout = 120s;

struct State;
using Self = caf::stateful_actor<std::unique_ptr<State>>;

/// The job's protocol; one instance inside the actor.
struct State {
  enum class Phase { preparing, running, saving, halting, ended };

  State(Self* s, JobActorSetup x) : self(s), setup(std::move(x)), lost(setup.nodes.size(), false) {}

  Self* self;
  JobActorSetup setup;
  Phase phase = Phase::preparing;
  std::vector<caf::actor> reducers;
  std::vector<bool> lost;  // by index of setup.nodes
  std::size_t actors = 0;
  std::size_t ready = 0;
  std::string state_hash, data_hash;    // of the first that said one
  std::string state_actor, data_actor;  // who that was
  std::optional<Error> failure;         // why it is halting
  std::uint64_t steps_done = 0;
  std::size_t halts_open = 0;
  std::optional<std::size_t> most_advanced;
  std::map<std::uint64_t, std::map<std::uint32_t, Evaluated>> parts;

  void end(Code code, std::string message, std::string path = {}, std::string sha256 = {}) {
    if (phase == Phase::ended) return;
    phase = Phase::ended;
    JobEnded ended{static_cast<std::uint16_t>(code), std::move(message), steps_done,
                   std::move(path), std::move(sha256)};
    setup.observer->on_ended(ended);
    setup.done(std::move(ended));
    self->quit();
  }

  void on_deployed(Deployed deployed) {
    reducers = std::move(deployed.reducers);
    actors = deployed.actors;
    begin_if_ready();
  }

  /// Records who said what first; a later one that differs is a mistake across nodes.
  void compare(const char* what, const std::string& theirs, const std::string& actor,
               std::string& ours, std::string& ours_from) {
    if (theirs.empty()) return;
    if (ours.empty()) {
      ours = theirs;
      ours_from = actor;
    } else if (ours != theirs) {
      fail(Error{Code::invalid_argument,
                 fmt::format("{} and {} start from different {} ({} and {}); give every node the "
                             "same files",
                             ours_from, actor, what, ours, theirs)});
    }
  }

  void on_ready(const Ready& x) {
    if (phase != Phase::preparing) return;
    if (x.code != 0)
      return fail(Error{static_cast<Code>(x.code), fmt::format("{}: {}", x.actor, x.message)});
    compare("data", x.data_hash, x.actor, data_hash, data_actor);
    compare("weights", x.state_hash, x.actor, state_hash, state_actor);
    steps_done = std::max(steps_done, x.steps_done);
    if (x.parameters > 0) {
      setup.started.steps_per_epoch = x.steps_per_epoch;
      setup.started.parameters = x.parameters;
    }
    ++ready;
    begin_if_ready();
  }

  void begin_if_ready() {
    if (phase != Phase::preparing || reducers.empty() || ready < actors) return;
    phase = Phase::running;
    setup.started.first_step = steps_done;
    setup.observer->on_started(setup.started);
    for (const auto& reducer : reducers) self->send(reducer, Begin{setup.generation, steps_done});
  }

  void on_step(const StepFinished& step) {
    steps_done = std::max(steps_done, step.step + 1);
    if (phase == Phase::running) setup.observer->on_step(step);
  }

  void on_evaluated(const Evaluated& x) {
    if (phase != Phase::running && phase != Phase::saving) return;
    auto& epoch = parts[x.epoch];
    epoch[x.rank] = x;
    if (epoch.size() < setup.started.ranks) return;
    EpochFinished finished{x.epoch, 0, 0, 0};
    std::uint64_t correct = 0;
    for (const auto& [rank, part] : epoch) {  // in rank order: the same sum on any placement
      finished.test_loss += part.loss_sum;
      finished.test_samples += part.samples;
      correct += part.correct;
    }
    if (finished.test_samples > 0) {
      const auto samples = static_cast<double>(finished.test_samples);
      finished.test_loss /= samples;
      finished.test_accuracy = static_cast<double>(correct) / samples;
    }
    parts.erase(x.epoch);
    setup.observer->on_epoch(finished);
    if (x.epoch + 1 == setup.started.epochs) evaluated_last = true;
    end_if_complete();
  }

  void on_last_step(const LastStepDone& x) {
    if (phase != Phase::running) return;
    phase = Phase::saving;
    steps_done = x.steps_done;
    save_at(0, true, 0);
  }

  /// Asks one reducer to write its state; on failure the next living one.
  void save_at(std::size_t index, bool final_weights, std::size_t tries) {
    while (index < reducers.size() && lost[index]) ++index;
    if (index >= reducers.size()) return end_without_checkpoint();
    self->request(reducers[index], kSaveTimeout, Save{final_weights})
        .then([this, final_weights](Saved& saved) { on_saved(final_weights, saved); },
              [this, index, final_weights, tries](caf::error& reason) {
                lost[index] = lost[index] || reason == caf::exit_reason::remote_link_unreachable;
                save_error = remoting::from_caf(reason);
                if (tries < reducers.size())
                  save_at((index + 1) % reducers.size(), final_weights, tries + 1);
                else
                  end_without_checkpoint();
              });
  }

  std::optional<Error> save_error;

  void end_without_checkpoint() {
    std::string text = failure ? failure->message : "the job could not write its result";
    if (save_error)
      text += fmt::format("; no checkpoint was written: {}", save_error->message);
    else
      text += "; no node is left to write a checkpoint";
    end(failure ? failure->code : Code::io_error, std::move(text));
  }

  void on_saved(bool final_weights, const Saved& saved) {
    steps_done = saved.steps_done;
    if (final_weights) {
      result = saved;
      return end_if_complete();
    }
    setup.observer->on_checkpoint({saved.steps_done, saved.path});
    end(failure->code,
        fmt::format("{}; the job stopped after step {} and goes on with --resume from {}",
                    failure->message, saved.steps_done, saved.path),
        saved.path);
  }

  /// The result may be on disk before the last ranks have said how the last epoch's test went.
  void end_if_complete() {
    const bool evaluates =
        setup.started.first_step < setup.started.epochs * setup.started.steps_per_epoch;
    if (result && (evaluated_last || !evaluates)) end(Code::ok, {}, result->path, result->sha256);
  }

  std::optional<Saved> result;  // the final weights
  bool evaluated_last = false;

  /// The survivors stop; the one that got farthest writes a checkpoint.
  void fail(Error reason) {
    if (phase == Phase::halting || phase == Phase::ended) return;
    const bool had_begun = phase != Phase::preparing;
    failure = std::move(reason);
    phase = Phase::halting;
    if (!had_begun) return end(failure->code, failure->message);
    for (std::size_t i = 0; i < reducers.size(); ++i) {
      if (lost[i]) continue;
      ++halts_open;
      self->request(reducers[i], kHaltTimeout, Halt{})
          .then([this, i](const Halted& halted) { on_halted(i, halted.steps_done); },
                [this, i](caf::error&) {
                  lost[i] = true;
                  on_halted(i, 0);
                });
    }
    if (halts_open == 0) end_without_checkpoint();
  }

  void on_halted(std::size_t index, std::uint64_t steps) {
    if (!lost[index] && (!most_advanced || steps > steps_done_of_most_advanced)) {
      most_advanced = index;
      steps_done_of_most_advanced = steps;
    }
    if (--halts_open > 0) return;
    if (!most_advanced) return end_without_checkpoint();
    save_at(*most_advanced, false, 0);
  }

  std::uint64_t steps_done_of_most_advanced = 0;

  void on_departed(const NodeDeparted& departed) {
    for (std::size_t i = 0; i < setup.nodes.size(); ++i) {
      if (setup.nodes[i].node != departed.node || lost[i]) continue;
      lost[i] = true;
      fail(Error{Code::unavailable,
                 fmt::format("node '{}' ({}) was lost: {}", setup.nodes[i].name,
                             short_name(departed.node), departed.reason.message)});
    }
  }
};

caf::behavior job(Self* self, JobActorSetup setup) {
  self->state = std::make_unique<State>(self, std::move(setup));
  auto* state = self->state.get();
  return {
      [=](Deployed& x) { state->on_deployed(std::move(x)); },
      [=](const DeploymentFailed& x) { state->fail(x.reason); },
      [=](const Ready& x) { state->on_ready(x); },
      [=](const StepFinished& x) { state->on_step(x); },
      [=](const Evaluated& x) { state->on_evaluated(x); },
      [=](const CheckpointWritten& x) { state->setup.observer->on_checkpoint(x); },
      [=](const Notice& x) { state->setup.observer->on_notice(x); },
      [=](const LastStepDone& x) { state->on_last_step(x); },
      [=](const Failed& x) {
        state->fail(Error{static_cast<Code>(x.code), fmt::format("{}: {}", x.actor, x.message)});
      },
      [=](const NodeDeparted& x) { state->on_departed(x); },
      [=](CancelRequested) {
        state->fail(Error{Code::cancelled, "interrupted"});
      },
  };
}

}  // namespace

caf::actor spawn_job_actor(caf::actor_system& system, JobActorSetup setup) {
  return system.spawn(job, std::move(setup));
}

}  // namespace troupe::train
