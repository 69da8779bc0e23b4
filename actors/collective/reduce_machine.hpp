#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "actors/collective/messages.hpp"
#include "actors/collective/plan.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer_pool.hpp"

namespace troupe::collective {

namespace internal {
class NodeSums;
struct StepState;
}  // namespace internal

/// One node's part of the reduction: takes local gradients and what the other nodes send, says what
/// to send to whom, and hands out the sums. Does no I/O and never waits.
///
/// start() begins a generation at a step; steps then follow each other: when one is done, the
/// machine takes the gradients of the next. The others may be one step ahead (what they send is
/// kept) and never two. A generation ends with abort() or with the start() of a later one.
///
/// Ownership: borrows `effects`. Gradients are held, and sent from where they lie: a gradient may
/// be
///            written again once its Buffer is unique(). The other nodes have read it at the latest
///            when the next step is done. Sums are from the pool, read-only while not unique().
/// Threads:   one at a time; effects are called from inside the methods, and must not call back.
/// Failure:   an error changes nothing, with one exception: after `resource_exhausted` the step
///            cannot be finished; abort(). Codes: `stale_generation` (drop it, all is well),
///            `protocol_error` (contradicts the plan or what came before), `shape_mismatch`,
///            `failed_precondition` (local call at the wrong moment), `invalid_argument`.
/// Invariant: each rank is counted exactly once in each sum, in the order of Tree.
class ReduceMachine {
public:
  /// Where the machine's decisions go.
  class Effects {
  public:
    virtual ~Effects() = default;
    virtual void send(std::uint32_t to, Partial message) = 0;
    virtual void send(std::uint32_t to, SliceSum message) = 0;
    virtual void send(std::uint32_t to, Extras message) = 0;
    /// Delivery::slices only: a run of a bucket is final.
    virtual void slice_done(std::uint64_t /*step*/, std::uint32_t /*slice*/, Buffer /*sum*/) {}
    /// A bucket is final; `sum` is empty with Delivery::slices.
    virtual void bucket_done(std::uint64_t step, std::uint32_t bucket, Buffer sum) = 0;
    /// All buckets are, and here are the sums of the extra values. The last effect of a step.
    virtual void step_done(std::uint64_t step, std::vector<double> extras) = 0;
    /// A message that came before start() turned out not to fit; it was dropped.
    virtual void kept_refused(Error /*reason*/) {}
  };

  enum class Delivery : std::uint8_t {
    buckets,  ///< each bucket in one Buffer: costs a copy of what other nodes summed
    slices,   ///< each slice where it arrived: no copy
  };

  struct Options {
    Delivery delivery = Delivery::buckets;
    std::size_t max_kept_bytes = std::size_t{1} << 30;  ///< of messages of generations to come
    std::size_t max_kept_messages = 16384;
    std::shared_ptr<BufferPool> pool;  ///< for sums; one of its own if null
  };

  ReduceMachine(Options options, Effects& effects);
  ~ReduceMachine();
  ReduceMachine(const ReduceMachine&) = delete;
  ReduceMachine& operator=(const ReduceMachine&) = delete;

  /// Takes part as node `self` of `plan` from `step` on; what was in flight is dropped. Messages of
  /// `generation` that came too early are handled now (see Effects::kept_refused). Errors:
  /// `failed_precondition` (generation not above all before), `invalid_argument` (self).
  Status start(std::shared_ptr<const ReducePlan> plan, std::uint32_t self, std::uint64_t generation,
               std::uint64_t step);

  /// Ends the generation at once and lets go of all buffers. Its messages are stale from now on.
  void abort();

  /// The gradient of a rank of this node for one bucket: f32, all of the bucket. A slice of a
  /// larger buffer is fine.
  Status add_gradient(std::uint64_t generation, std::uint64_t step, std::uint32_t rank,
                      std::uint32_t bucket, Buffer gradient);

  /// The extra values of a rank of this node: as many as the plan says.
  Status add_extras(std::uint64_t generation, std::uint64_t step, std::uint32_t rank,
                    std::span<const double> values);

  Status receive(Partial message);
  Status receive(SliceSum message);
  Status receive(Extras message);

  /// Between start() and abort().
  bool active() const noexcept { return plan_ != nullptr; }
  std::uint64_t generation() const noexcept { return generation_; }
  /// The step whose gradients are taken now.
  std::uint64_t step() const noexcept { return step_; }
  std::uint32_t self() const noexcept { return self_; }
  const std::shared_ptr<const ReducePlan>& plan() const noexcept { return plan_; }
  const std::shared_ptr<BufferPool>& pool() const noexcept { return options_.pool; }

  /// Bytes of messages kept for generations to come.
  std::size_t kept_bytes() const noexcept { return kept_bytes_; }

private:
  using Message = std::variant<Partial, SliceSum, Extras>;

  // What comes in.
  template <class T>
  Status enter(T message);
  template <class T>
  Status receive_any(T message);
  template <class T>
  Status check_remote(const T& message) const;
  Status check_local(std::uint64_t generation, std::uint64_t step, std::uint32_t rank,
                     std::size_t& local) const;
  Status keep(Message message, std::size_t bytes);
  void replay_kept();
  Status handle(Partial message);
  Status handle(SliceSum message);
  Status handle(Extras message);
  Status handle_extras_sum(Extras message);
  internal::StepState& state_of(std::uint64_t step) { return step == step_ ? *now_ : *next_; }

  // What follows from it.
  void order_sends();
  Status contribute(std::uint32_t bucket);
  Status contribute_slice(std::uint32_t slice);
  Result<std::vector<Buffer>> local_parts(std::uint32_t slice);
  Status settle_slice(std::uint32_t slice);
  Result<Buffer> place_for(std::uint32_t slice);
  void deliver_slice(std::uint32_t slice, Buffer sum);
  void contribute_extras();
  void tell_extras();
  template <class T>
  void send_to_others(const T& message);
  Status settle_step();
  Status catch_up();

  Options options_;
  Effects& effects_;
  std::shared_ptr<const ReducePlan> plan_;
  std::uint32_t self_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t floor_ = 0;  ///< the lowest generation that is not over
  std::uint64_t step_ = 0;
  bool entered_ = false;

  std::unique_ptr<internal::NodeSums> sums_;
  std::vector<std::uint32_t> send_order_;      ///< all slices; a bucket's lie together
  std::unique_ptr<internal::StepState> now_;   ///< of step_
  std::unique_ptr<internal::StepState> next_;  ///< of step_ + 1
  std::deque<Message> kept_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace troupe::collective
