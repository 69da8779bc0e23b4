#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/collective/reduce_machine.hpp"
#include "actors/collective/reducer.hpp"
#include "actors/train/messages.hpp"
#include "kernels/rank_sums.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// A reducer's part in what its trainers have summed over all ranks in the middle of a step
/// (kernels::SumOverRanks): another reduction of the same placement, in which each call of a step
/// is a step of its own.
///
/// Ownership: borrows the actor, and `peers`, through which it sends.
/// Threads:   that actor only.
/// Failure:   who waits for a sum gets it, or an error when the generation ends before.
class RankExchange final : public collective::ReduceMachine::Effects {
public:
  RankExchange(caf::event_based_actor* self, collective::ActorEffects& peers)
      : self_(self), peers_(peers), machine_({}, *this) {}
  /// The actor ends, and CAF does not answer for it.
  ~RankExchange() override { abort(); }

  /// For passes that ask for `sums` on ranks that are placed like this. Errors: as
  /// ReducePlan::make.
  Status prepare(const kernels::RankSums& sums, const collective::PlanSpec& placement);

  /// Takes part as node `node` from step `step` on.
  Status start(std::uint32_t node, std::uint64_t generation, std::uint64_t step);
  /// Ends the generation; who waits is told so.
  void abort();

  /// For a behavior's handler, in which it must be called.
  caf::result<SummedValues> add(RankValues x);

  /// Whether that message is of this reduction.
  bool takes(const collective::Extras& x) const noexcept {
    return plan_ != nullptr && x.plan == plan_->fingerprint();
  }
  Status receive(collective::Extras x) { return machine_.receive(std::move(x)); }

private:
  void send(std::uint32_t to, collective::Partial message) override;
  void send(std::uint32_t to, collective::SliceSum message) override;
  void send(std::uint32_t to, collective::Extras message) override;
  void bucket_done(std::uint64_t, std::uint32_t, Buffer) override {}
  void step_done(std::uint64_t step, std::vector<double> extras) override;

  using Promise = caf::typed_response_promise<SummedValues>;

  caf::event_based_actor* self_;
  collective::ActorEffects& peers_;
  kernels::RankSums sums_;
  std::shared_ptr<const collective::ReducePlan> plan_;  ///< none where nothing is asked for
  collective::ReduceMachine machine_;
  std::map<std::uint32_t, Promise> waiting_;  ///< ranks
};

}  // namespace troupe::train
