#include "actors/job/job_machine.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::train {
namespace {

/// Generations are numbered on from a multiple of this by each head that takes over, as what the
/// one before it was about to begin may be known to nobody.
constexpr std::uint64_t kGenerationsOfTerm = 1'000'000;

/// Skipped steps, each by every rank that is to blame, that are told one by one.
constexpr std::size_t kMostSkipsTold = 10;

}  // namespace

JobMachine::JobMachine(Options options, JobEffects& effects, JobObserver& observer)
    : options_(std::move(options)),
      effects_(effects),
      observer_(observer),
      stragglers_(options_.stragglers),
      started_(options_.started) {}

void JobMachine::start(std::vector<JobNode> nodes, TimePoint now) {
  members_ = std::move(nodes);
  place(now);
}

void JobMachine::inherit(const Inherited& inherited, std::vector<JobNode> nodes, TimePoint now) {
  members_ = std::move(nodes);
  generation_ = std::max(inherited.last_generation, inherited.term * kGenerationsOfTerm);
  change_reason_ = "the head was lost";
  has_begun_ = inherited.begun || inherited.generation != 0;
  steps_done_ = reported_ = inherited.steps;
  epochs_evaluated_ = inherited.epochs;
  checkpoint_ = inherited.checkpoint;
  if (inherited.generation == 0) {
    // What the head before was told last may not have got into its store.
    if (checkpoint_) steps_done_ = std::max(steps_done_, checkpoint_->step);
    return place(now);
  }
  current_ = {inherited.generation, inherited.nodes, {}};
  for (const auto& node : current_.nodes) current_.holders.emplace_back().lost = !node.node.valid();
  next_ = current_;
  started_.steps_per_epoch = inherited.steps_per_epoch;
  started_.parameters = inherited.parameters;
  started_.first_step = inherited.first_step;
  started_.nodes = static_cast<std::uint32_t>(current_.nodes.size());
  stragglers_.begin(current_.nodes.size());
  phase_ = Phase::running;
  observer_.on_started(started_);
  if (!inherited.undisturbed)
    change("the head was lost, and not all nodes went on without it", now);
  else if (choose() != current_.nodes)
    change("nodes joined while there was no head", now);
}

// --- who is there --------------------------------------------------------------------------------

std::string JobMachine::text(const JobNode& node) {
  return fmt::format("node '{}' ({})", node.name, short_name(node.node));
}

void JobMachine::joined(const JobNode& node, const Traits& traits, TimePoint now) {
  if (std::find(members_.begin(), members_.end(), node) != members_.end()) return;
  if (const auto status = compare(traits, text(node)); !status.ok())
    return unfit(node, status.error());
  members_.push_back(node);
  if (phase_ == Phase::waiting) return place(now);
  if (phase_ == Phase::running && choose() != current_.nodes) change(text(node) + " joined", now);
}

void JobMachine::unfit(const JobNode& node, const Error& reason) {
  observer_.on_notice({fmt::format("{} joined and is left out: {}", text(node), reason.message)});
}

void JobMachine::departed(NodeId node, const Error& reason, TimePoint now) {
  const auto is_it = [node](const JobNode& x) { return x.node == node; };
  std::string name;
  if (const auto at = std::find_if(members_.begin(), members_.end(), is_it); at != members_.end()) {
    name = at->name;
    members_.erase(at);
  }
  const auto lose_in = [&](Generation& g) {
    const auto at = std::find_if(g.nodes.begin(), g.nodes.end(), is_it);
    if (at == g.nodes.end()) return false;
    auto& holder = g.holders[static_cast<std::size_t>(at - g.nodes.begin())];
    holder.lost = true;
    holder.halting = false;
    return true;
  };
  const bool in_current = lose_in(current_);
  const bool in_next = lose_in(next_);
  const auto why = fmt::format("{} was lost: {}", text({node, name}), reason.message);
  switch (phase_) {
    case Phase::running:
    case Phase::saving:  // the last step may have been finished there alone
      if (in_current) change(why, now);
      break;
    case Phase::preparing:
      if (!in_next) break;
      change_reason_ = why;
      place(now);
      break;
    case Phase::halting:
    case Phase::ending:
      if (in_current) after_halt(now);
      break;
    case Phase::waiting:
      if (has_begun_ && all_lost()) place(now);  // which ends it: nothing is left to wait with
      break;
    case Phase::over:
      break;
  }
}

void JobMachine::draining(NodeId node, TimePoint now) {
  const auto is_it = [node](const JobNode& x) { return x.node == node; };
  const auto at = std::find_if(members_.begin(), members_.end(), is_it);
  if (at == members_.end()) return;
  const auto why = text(*at) + " is to leave";
  members_.erase(at);
  // A generation that is being prepared begins first; then comes the next.
  if (phase_ == Phase::running && choose() != current_.nodes) change(why, now);
}

void JobMachine::tick(TimePoint now) {
  if (!deadline_ || now < *deadline_) return;
  deadline_.reset();
  if (phase_ == Phase::preparing) return place(now);
  if (phase_ == Phase::saving) {
    save_tried_.assign(current_.holders.size(), false);
    return save_next(true);
  }
  if (phase_ != Phase::waiting) return;
  end_with({Code::unavailable,
            fmt::format("{}of at least {} node{} only {} were there within {} s; start more with "
                        "`troupe node --head HOST:PORT`",
                        change_reason_.empty() ? "" : change_reason_ + "; ", options_.min_nodes,
                        options_.min_nodes == 1 ? "" : "s", choose().size(),
                        std::chrono::duration_cast<std::chrono::seconds>(options_.wait).count())},
           now);
}

void JobMachine::cancel(TimePoint now) {
  end_with({Code::cancelled, "interrupted"}, now);
}

// --- progress ------------------------------------------------------------------------------------

void JobMachine::step(const StepFinished& x) {
  steps_done_ = std::max(steps_done_, x.step + 1);
  if (phase_ == Phase::over || x.step < reported_) return;  // one that was done again
  reported_ = x.step + 1;
  skips_ = x.skips;
  observer_.on_step(x);
}

void JobMachine::skipped(const NonFinite& x) {
  if (phase_ == Phase::over || told_skips_.size() == kMostSkipsTold ||
      !told_skips_.emplace(x.step, x.rank).second)
    return;
  observer_.on_notice({fmt::format("step {} was skipped: {}", x.step + 1, describe(x))});
  if (told_skips_.size() == kMostSkipsTold)
    observer_.on_notice({"of further skipped steps only the number is told, at the end"});
}

void JobMachine::epoch(const EpochFinished& x) {
  if (!has_begun_ || phase_ == Phase::over || x.epoch < epochs_evaluated_) return;
  on_epoch(x);
}

void JobMachine::on_epoch(const EpochFinished& x) {
  epochs_evaluated_ = x.epoch + 1;
  observer_.on_epoch(x);
}

void JobMachine::checkpoint(const CheckpointWritten& x) {
  if (!checkpoint_ || checkpoint_->step <= x.step) checkpoint_ = x;
  observer_.on_checkpoint(x);
}

void JobMachine::evaluated(const Evaluated& x) {
  if (!has_begun_ || phase_ == Phase::over || x.epoch < epochs_evaluated_ ||
      x.epoch + 1 != started_.epochs || x.rank >= started_.ranks)
    return;
  last_test_[x.rank] = x;
  if (last_test_.size() < started_.ranks) return;
  EpochFinished finished{x.epoch, 0, 0, 0};
  std::uint64_t correct = 0;
  for (const auto& [rank, part] : last_test_) {  // in rank order: the same sum on any placement
    finished.test_loss += part.loss_sum;
    finished.test_samples += part.samples;
    correct += part.correct;
  }
  if (finished.test_samples > 0) {
    const auto samples = static_cast<double>(finished.test_samples);
    finished.test_loss /= samples;
    finished.test_accuracy = static_cast<double>(correct) / samples;
  }
  on_epoch(finished);
  end_if_complete();
}

void JobMachine::last_step(const LastStepDone& x) {
  if (phase_ != Phase::running || x.generation != current_.number) return;
  phase_ = Phase::saving;
  steps_done_ = x.steps_done;
  save_tried_.assign(current_.holders.size(), false);
  save_next(true);
}

void JobMachine::pace(const Pace& x, TimePoint now) {
  if (phase_ != Phase::running || x.generation != current_.number) return;
  const auto verdict = stragglers_.pace(x.index, x.seconds);
  if (!verdict) return;
  const JobNode& node = current_.nodes[x.index];
  const auto what = fmt::format("{} is a straggler: {}", text(node), verdict->sentence);
  if (!verdict->drop || members_.size() <= std::max(1u, options_.min_nodes))
    return observer_.on_notice({what});
  std::erase(members_, node);
  change(what + "; the job drops it", now);
}

// --- the end -------------------------------------------------------------------------------------

void JobMachine::failed(const Failed& x, TimePoint now) {
  if (x.generation != (phase_ == Phase::preparing ? generation_ : current_.number)) return;
  end_with({static_cast<Code>(x.code), fmt::format("{}: {}", x.actor, x.message)}, now);
}

/// The survivors stop; the one that got farthest writes a checkpoint.
void JobMachine::end_with(Error reason, TimePoint now) {
  if (phase_ == Phase::ending || phase_ == Phase::over) return;
  failure_ = std::move(reason);
  phase_ = Phase::ending;
  if (!has_begun_) return end(failure_->code, failure_->message);
  save_tried_.assign(current_.holders.size(), false);
  halt_all(now);
}

void JobMachine::save_next(bool final_weights) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < current_.holders.size(); ++i) {
    if (current_.holders[i].lost || save_tried_[i]) continue;
    if (!best ||
        (!final_weights && current_.holders[i].steps_done > current_.holders[*best].steps_done))
      best = i;
  }
  if (!best) return end_without_checkpoint();
  saving_ = true;
  save_tried_[*best] = true;
  effects_.save(current_.number, *best, final_weights);
}

void JobMachine::saved(std::uint64_t generation, bool final_weights, const Saved& saved,
                       TimePoint now) {
  if (phase_ == Phase::over) return;
  steps_done_ = std::max(steps_done_, saved.steps_done);
  if (final_weights) {
    result_ = saved;  // right whichever generation wrote it
    if (!saved.warning.empty()) observer_.on_notice({saved.warning});
  }
  if (generation != current_.number) return;
  saving_ = false;
  if (phase_ == Phase::saving) return end_if_complete();
  if (!final_weights && phase_ != Phase::over && phase_ != Phase::ending)
    return checkpoint({saved.steps_done, saved.path});  // while waiting
  if (phase_ != Phase::ending) return;
  if (final_weights) return after_halt(now);
  checkpoint({saved.steps_done, saved.path});
  end(failure_->code,
      saved.steps_done == 0
          ? fmt::format("{}; the job stopped in its first step", failure_->message)
          : fmt::format("{}; the job stopped after step {} and goes on with --resume from {}",
                        failure_->message, saved.steps_done, saved.path),
      saved.path);
}

void JobMachine::not_saved(std::uint64_t generation, bool final_weights, const Error& reason,
                           TimePoint now) {
  if (generation != current_.number) return;
  saving_ = false;
  save_error_ = reason;
  if (phase_ == Phase::saving) {
    if (reason.code != Code::unavailable && reason.code != Code::failed_precondition)
      return save_next(true);
    deadline_ = now + kRetryAfter;  // its node was lost, or has not got so far yet
    return;
  }
  if (phase_ != Phase::ending) return;
  final_weights ? after_halt(now) : save_next(false);
}

void JobMachine::end_without_checkpoint() {
  std::string text = failure_ ? failure_->message : "the job could not write its result";
  if (save_error_) text += fmt::format("; no checkpoint was written: {}", save_error_->message);
  text += checkpoint_ ? fmt::format("; it goes on with --resume from {}", checkpoint_->path)
                      : "; it goes on with --resume from its last checkpoint, if there is one";
  const auto code = failure_ ? failure_->code : save_error_ ? save_error_->code : Code::unavailable;
  end(code, std::move(text));
}

/// The result may be on disk before the last ranks have said how the last epoch's test went.
void JobMachine::end_if_complete() {
  if (phase_ == Phase::saving && result_ && epochs_evaluated_ >= started_.epochs)
    end(Code::ok, {}, result_->path, result_->sha256);
}

void JobMachine::end(Code code, std::string message, std::string path, std::string sha256) {
  phase_ = Phase::over;
  JobEnded ended{static_cast<std::uint16_t>(code), std::move(message), steps_done_, std::move(path),
                 std::move(sha256)};
  if (skips_ > 0)
    observer_.on_notice({fmt::format("{} step{} skipped over gradients that were not finite",
                                     skips_, skips_ == 1 ? " was" : "s were")});
  observer_.on_ended(ended);
  effects_.ended(ended);
}

}  // namespace troupe::train
