#include "actors/train/reducer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <caf/exit_reason.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "actors/checkpoint/checkpoint_store.hpp"
#include "actors/collective/reduce_machine.hpp"
#include "actors/collective/reducer.hpp"
#include "actors/train/checkpointer.hpp"
#include "actors/train/events.hpp"
#include "actors/train/lifetime.hpp"
#include "actors/train/local_trainers.hpp"
#include "actors/train/messages.hpp"
#include "actors/train/non_finite.hpp"
#include "actors/train/program.hpp"
#include "actors/train/rank_exchange.hpp"
#include "actors/train/reporter.hpp"
#include "actors/train/step_sums.hpp"
#include "runtime/graph/messages.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {
namespace {

/// How often a node says how fast it is.
constexpr auto kPacePeriod = std::chrono::seconds(1);

/// The reducer's state and protocol; lives as long as the actor.
class Reducer final : public collective::ActorEffects,
                      public std::enable_shared_from_this<Reducer> {
public:
  Reducer(caf::event_based_actor* self, std::shared_ptr<NodeContext> context, Setup setup)
      : ActorEffects(self),
        self_(self),
        context_(std::move(context)),
        setup_(std::move(setup)),
        reporter_(self, setup_.job_actor),
        machine_(machine_options(), *this),
        exchange_(self, *this),
        trainers_(self) {}

  /// Errors are told to the job.
  void prepare() {
    Ready ready;
    ready.generation = setup_.generation;
    ready.index = setup_.index;
    ready.actor = name();
    ready.node = setup_.index;
    auto hash = try_prepare();
    if (hash.ok()) {
      ready.state_hash = std::move(*hash);
      ready.steps_done = job_->replica().steps_done();
      ready.weights_hash = job_->replica().weights_hash();
      ready.program = program_hash();
      ready.instruction_set = job_->instruction_set();
      ready.steps_per_epoch = job_->length().steps_per_epoch;
      ready.parameters = job_->replica().model().parameter_count();
      if (setup_.generation == 1) tell_what_is_odd();
    } else {
      ready.code = static_cast<std::uint16_t>(hash.code());
      ready.message = hash.error().message;
    }
    reporter_.say(ready);
  }

  caf::behavior behavior(const std::shared_ptr<bool>& started);

private:
  static collective::ReduceMachine::Options machine_options() {
    collective::ReduceMachine::Options options;
    options.delivery = collective::ReduceMachine::Delivery::slices;
    return options;
  }

  std::string name() const { return fmt::format("reducer {}", setup_.index); }

  /// What is no error, and that a person may not have meant.
  void tell_what_is_odd() {
    // The number is the job's: another one would give other bits.
    const std::uint64_t threads = job_->config().threads_per_rank;
    const std::uint64_t cpus = std::thread::hardware_concurrency();  // 0: not known
    if (cpus > 0 && threads > cpus)
      reporter_.say(
          Notice{fmt::format("node {}: job.threads_per_rank is {}, but there are {} CPUs: "
                             "threads will wait for each other",
                             setup_.index, threads, cpus)});
    // A damaged file may have been replaced.
    const auto& data = job_->replica().resumed_data_hash();
    if (setup_.index == 0 && !data.empty() && data != job_->data_hash())
      reporter_.say(
          Notice{"the data has changed since the checkpoint was written: the result will "
                 "be that of neither data alone"});
  }

  /// The replica's hash.
  Result<std::string> try_prepare() {
    TROUPE_ASSIGN(job_, context_->job(setup_));
    const auto& model = job_->replica().model();
    auto buckets = make_buckets(model, job_->config().operation.bucket_bytes);
    collective::PlanSpec spec;
    spec.node_of_rank = setup_.node_of_rank;
    for (auto node : spec.node_of_rank) spec.nodes = std::max(spec.nodes, node + 1);
    for (const auto& bucket : buckets) spec.bucket_elements.push_back(bucket.end - bucket.begin);
    spec.extras = kExtras;
    TROUPE_TRY(exchange_.prepare(kernels::rank_sums(model), spec));
    TROUPE_ASSIGN(plan_, collective::ReducePlan::make(std::move(spec)));
    sums_ = StepSums(plan_, std::move(buckets));
    // Before the work, not after it. Whichever node is left may have to write.
    CheckpointStore store(job_->config().checkpoint.directory, job_->config().checkpoint.keep);
    TROUPE_TRY(store.check_writable(
        fmt::format("{}-{}-{}", ::getpid(), setup_.job, setup_.generation * 65536 + setup_.index)));
    checkpointer_ =
        self_->spawn<caf::detached + caf::linked>(checkpointer, job_->config(), job_->data_hash());
    return job_->replica().hash();
  }

  void connected(const graph::Connected& x) {
    std::vector<caf::actor> peers;
    for (const auto& peer : x.peers) peers.push_back(peer.actor);
    if (x.port == kGradients)
      trainers_.connect(std::move(peers));
    else if (x.output)
      set_peers(std::move(peers));
  }

  // What the machine decides; sends are the base's.
  void slice_done(std::uint64_t, std::uint32_t slice, Buffer sum) override {
    sums_.add(slice, std::move(sum));
  }
  void bucket_done(std::uint64_t, std::uint32_t, Buffer) override {}
  void step_done(std::uint64_t, std::vector<double> extras) override {
    step_extras_ = std::move(extras);
  }

  void begin(const Begin& x) {
    if (auto status = machine_.start(plan_, setup_.index, x.generation, x.step); !status.ok())
      return fail(status.error());
    if (auto status = exchange_.start(setup_.index, x.generation, x.step); !status.ok())
      return fail(status.error());
    generation_ = x.generation;
    begun_ = running_ = true;
    if (setup_.index == 0) reporter_.epochs(job_->replica().epochs(), x.epochs);
    if (x.evaluate)
      evaluate(x.step / job_->length().steps_per_epoch - 1);
    else
      next();
  }

  /// Begins the next step, or ends the job.
  void next() {
    const auto done = job_->replica().steps_done();
    if (done >= job_->total_steps()) {
      running_ = false;
      finished_ = true;
      if (setup_.index == 0) reporter_.last_step({generation_, done});
      return;
    }
    step_began_ = std::chrono::steady_clock::now();
    if (step_began_ - pace_told_ > kPacePeriod) {
      pace_told_ = step_began_;
      reporter_.say(Pace{generation_, setup_.index, job_->take_pace()});
    }
    trainers_.ask(StepBegun{generation_, done});
  }

  /// What a machine call said; an old message is nothing to worry about.
  void check(const Status& status) {
    if (!status.ok() && status.code() != Code::stale_generation) return fail(status.error());
    if (step_extras_) finish_step();
  }

  /// The values of a rank, and of its part of the test before this step.
  void add_extras(const collective::ExtrasReady& x) {
    trainers_.answered();
    auto values = x.values;
    values.resize(kExtras);
    if (const auto part = test_parts_.find(x.rank); part != test_parts_.end()) {
      values[kTestLossSum] = part->second.loss_sum;
      values[kTestCorrect] = static_cast<double>(part->second.correct);
      values[kTestSamples] = static_cast<double>(part->second.samples);
      test_parts_.erase(part);
    }
    check(machine_.add_extras(x.generation, x.step, x.rank, values));
  }

  /// A rank of this node has it in the step in flight.
  void note(const NonFinite& x) {
    if (running_ && x.generation == generation_ && x.step == job_->replica().steps_done())
      non_finite_[x.rank] = x;
  }

  void finish_step() {
    const auto extras = std::move(*step_extras_);
    step_extras_.reset();
    auto& replica = job_->replica();
    const auto bad = find_bad(extras);
    const bool skip = extras[kNonFinite] > 0 || bad;
    // A loss that is not finite is not the scale's fault.
    const bool rescales = replica.loss_scale().can_shrink() && std::isfinite(extras[kLossSum]);
    if (skip && !rescales && job_->config().optimizer.non_finite != "skip") return stop_over(bad);
    if (skip) {
      tell_skipped(bad);
      replica.skip();
    } else if (auto status = replica.take_step(sums_.runs()); !status.ok()) {
      return fail(status.error());
    }
    sums_.clear();
    non_finite_.clear();
    report(extras, skip);
    after_step(replica.steps_done());
  }

  /// What is not finite in the sums, if every rank's part of them is. From what all nodes have the
  /// same bits of, as all must decide alike.
  std::optional<NonFinite> find_bad(const std::vector<double>& extras) const {
    if (extras[kNonFinite] > 0) return std::nullopt;
    auto found = sums_.find_bad(job_->replica().model());
    if (!found && !std::isfinite(extras[kLossSum]))
      found = NonFinite{.nan = std::isnan(extras[kLossSum])};
    return found;
  }

  /// Nothing of the step was applied anywhere. Who has nothing to tell waits for the job to halt it
  /// at the word of the node that has; should that be lost, the step is done again.
  void stop_over(const std::optional<NonFinite>& sum) {
    if (!sum && non_finite_.empty()) return abort();
    const auto& bad = sum ? *sum : non_finite_.begin()->second;
    fail({Code::failed_precondition,
          fmt::format("step {} was not taken: {}; lower optimizer.lr, add warm-up steps "
                      "(optimizer.schedule.warmup_steps), clip gradients (optimizer.clip_norm), or "
                      "leave such steps out with optimizer.non_finite = \"skip\"",
                      job_->replica().steps_done() + 1, describe(bad))});
  }

  void tell_skipped(const std::optional<NonFinite>& sum) {
    for (const auto& [rank, x] : non_finite_) reporter_.say(x);
    if (!sum || setup_.index != 0) return;
    auto x = *sum;
    x.generation = generation_;
    x.step = job_->replica().steps_done();
    reporter_.say(x);
  }

  void report(const std::vector<double>& extras, bool skipped) {
    auto& replica = job_->replica();
    const auto step = replica.steps_done() - 1;
    if (const double tested = extras[kTestSamples]; tested > 0) {
      const EpochFinished epoch{step / job_->length().steps_per_epoch - 1,
                                extras[kTestLossSum] / tested, extras[kTestCorrect] / tested,
                                static_cast<std::uint64_t>(tested)};
      replica.add_epoch(epoch);
      if (setup_.index == 0) reporter_.say(epoch);
    }
    if (setup_.index != 0) return;
    const auto labels = static_cast<double>(job_->config().data.batch) *
                        static_cast<double>(replica.model().labels_per_sample());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - step_began_;
    reporter_.step({step, extras[kLossSum] / labels, extras[kCorrect] / labels, took.count(),
                    skipped, replica.skips()});
  }

  /// Checkpoints and evaluations stand between two steps.
  void after_step(std::uint64_t done) {
    const auto every = job_->config().checkpoint.every_steps;
    if (setup_.index == 0 && every > 0 && done % every == 0 && done < job_->total_steps())
      checkpoint();
    if (done % job_->length().steps_per_epoch != 0) return next();
    evaluate(done / job_->length().steps_per_epoch - 1);
  }

  void evaluate(std::uint64_t epoch) {
    evaluations_open_ = trainers_.count();
    if (evaluations_open_ == 0) return next();
    trainers_.ask(Evaluate{generation_, epoch});
  }

  void evaluated(const Evaluated& x) {
    trainers_.answered();
    if (!running_ || evaluations_open_ == 0) return;
    if (x.epoch + 1 >= job_->length().epochs)
      reporter_.evaluated(x);  // no step follows that would bring it
    else
      test_parts_[x.rank] = x;
    if (--evaluations_open_ == 0) next();
  }

  /// In the background; a failure is told to the job, which goes on.
  void checkpoint() {
    auto snapshot = job_->replica().snapshot();
    if (!snapshot.ok()) return notice(snapshot.error());
    const auto self = shared_from_this();
    self_->request(checkpointer_, caf::infinite, Write{std::move(*snapshot), false})
        .then(
            [self](const Saved& saved) {
              self->reporter_.say(CheckpointWritten{saved.steps_done, saved.path});
            },
            [self](const caf::error& error) { self->notice(remoting::from_caf(error)); });
  }

  void notice(const Error& error) {
    reporter_.say(Notice{fmt::format("no checkpoint was written: {}", error.message)});
  }

  caf::result<Saved> save(const Save& x) {
    if (!reporter_.is_from_job()) return not_the_job();
    if (x.final_weights && job_->replica().steps_done() < job_->total_steps())
      return remoting::to_caf({Code::failed_precondition, name() + " has not done the last step"});
    auto snapshot = job_->replica().snapshot();
    if (!snapshot.ok()) return remoting::to_caf(snapshot.error());
    self_->delegate(checkpointer_, Write{std::move(*snapshot), x.final_weights});
    return caf::delegated<Saved>{};
  }

  void abort() {
    running_ = false;
    machine_.abort();
    exchange_.abort();
    sums_.clear();
    test_parts_.clear();
    non_finite_.clear();
    step_extras_.reset();
  }

  static caf::error not_the_job() {
    return remoting::to_caf({Code::stale_generation, "another head has taken the job over"});
  }

  caf::result<Halted> halt() {
    if (!reporter_.is_from_job()) return not_the_job();
    abort();
    return trainers_.halt(job_ ? job_->replica().steps_done() : 0);
  }

  caf::result<Pulled> pull(const Pull& x) {
    if (!reporter_.is_from_job()) return not_the_job();
    auto promise = self_->make_response_promise<Pulled>();
    const auto self = shared_from_this();
    // Takes as long as it takes; the loss of the source is an answer.
    self_->request(x.source, caf::infinite, CopyState{})
        .then(
            [self, promise](const StateCopy& copy) mutable {
              auto pulled = self->install(copy);
              if (pulled.ok())
                promise.deliver(std::move(*pulled));
              else
                promise.deliver(remoting::to_caf(pulled.error()));
            },
            [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
    return promise;
  }

  Result<Pulled> install(const StateCopy& copy) {
    auto& replica = job_->replica();
    TROUPE_TRY(replica.install(copy.steps_done, copy.skips, copy.loss_scale, copy.parameters,
                               copy.optimizer_state, copy.epochs));
    TROUPE_ASSIGN(auto hash, replica.hash());
    return Pulled{replica.steps_done(), std::move(hash)};
  }

  caf::result<StateCopy> copy_state() {
    auto snapshot = job_->replica().snapshot();
    if (!snapshot.ok()) return remoting::to_caf(snapshot.error());
    return StateCopy{snapshot->steps_done,
                     snapshot->skips,
                     snapshot->loss_scale,
                     std::move(snapshot->parameters),
                     std::move(snapshot->optimizer_state),
                     job_->replica().epochs()};
  }

  void fail(const Error& error) {
    abort();
    reporter_.say(
        Failed{setup_.generation, name(), static_cast<std::uint16_t>(error.code), error.message});
  }

  void adopt(const Adopt& x) {
    static const std::vector<EpochFinished> kNone;
    reporter_.adopted(x, job_ ? job_->replica().epochs() : kNone, setup_.index == 0);
  }

  Reported report_state() const {
    Reported x;
    x.generation = setup_.generation;
    x.index = setup_.index;
    for (const auto node : setup_.node_of_rank) x.nodes = std::max(x.nodes, node + 1);
    x.begun = begun_;
    x.stopped = begun_ && !running_ && !finished_;
    if (job_) {
      x.steps_done = job_->replica().steps_done();
      x.steps_per_epoch = job_->length().steps_per_epoch;
      x.parameters = job_->replica().model().parameter_count();
    }
    return x;
  }

  caf::event_based_actor* self_;
  std::shared_ptr<NodeContext> context_;
  Setup setup_;
  Reporter reporter_;
  std::shared_ptr<JobOnNode> job_;
  std::shared_ptr<const collective::ReducePlan> plan_;
  collective::ReduceMachine machine_;
  RankExchange exchange_;
  LocalTrainers trainers_;
  caf::actor checkpointer_;
  std::uint64_t generation_ = 0;
  std::chrono::steady_clock::time_point step_began_, pace_told_;
  bool begun_ = false;
  bool running_ = false;
  bool finished_ = false;  ///< all steps are done
  std::size_t evaluations_open_ = 0;
  StepSums sums_;                                   // of the step in flight
  std::optional<std::vector<double>> step_extras_;  // set when the step's sums are complete
  std::map<std::uint32_t, Evaluated> test_parts_;   // by rank, for the next step's extras
  std::map<std::uint32_t, NonFinite> non_finite_;   // by rank, of this node in that step
};

caf::behavior Reducer::behavior(const std::shared_ptr<bool>& started) {
  const auto state = shared_from_this();
  return {
      [state](const graph::Connected& x) { state->connected(x); },
      [started](graph::Start) { *started = true; },
      [state](const Begin& x) {
        if (state->reporter_.is_from_job()) state->begin(x);
      },
      [state](collective::GradientReady& x) {
        state->check(state->machine_.add_gradient(x.generation, x.step, x.rank, x.bucket,
                                                  std::move(x.gradient)));
      },
      [state](const NonFinite& x) { state->note(x); },
      [state](const collective::ExtrasReady& x) { state->add_extras(x); },
      [state](collective::Partial& x) { state->check(state->machine_.receive(std::move(x))); },
      [state](collective::SliceSum& x) { state->check(state->machine_.receive(std::move(x))); },
      [state](collective::Extras& x) {
        state->check(state->exchange_.takes(x) ? state->exchange_.receive(std::move(x))
                                               : state->machine_.receive(std::move(x)));
      },
      [state](RankValues& x) { return state->exchange_.add(std::move(x)); },
      [state](const Evaluated& x) { state->evaluated(x); },
      [state](const Failed& x) {
        state->trainers_.answered();
        // It was told that the generation has ended, and by this reducer.
        if (x.code != static_cast<std::uint16_t>(Code::stale_generation)) state->reporter_.say(x);
      },
      [state](const Pull& x) { return state->pull(x); },
      [state](CopyState) { return state->copy_state(); },
      [state](const Adopt& x) { state->adopt(x); },
      [state](Report) { return state->report_state(); },
      [state](Halt) { return state->halt(); },
      [state](const Save& x) { return state->save(x); },
  };
}

}  // namespace

caf::behavior reducer(caf::event_based_actor* self, std::shared_ptr<NodeContext> context,
                      Setup setup) {
  const auto started = live_with_the_job(self, *context, Role::reducer, setup);
  auto state = std::make_shared<Reducer>(self, std::move(context), std::move(setup));
  state->prepare();
  return state->behavior(started);
}

}  // namespace troupe::train
