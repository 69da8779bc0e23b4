#include "actors/collective/all_reduce.hpp"

#include <algorithm>
#include <deque>
#include <optional>

#include <caf/event_based_actor.hpp>
#include <fmt/format.h>

#include "actors/collective/reducer.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::collective {
namespace {

/// Each request is a generation of its own, of one step: members that are ahead are then told from
/// those that disagree, whatever the sizes.
class AllReduceActor final : public caf::event_based_actor, private ActorEffects {
public:
  AllReduceActor(caf::actor_config& config, ReduceMachine::Options options)
      : caf::event_based_actor(config), ActorEffects(this), machine_(std::move(options), *this) {
    set_down_handler([this](caf::down_msg& down) { lost(down.source); });
  }

  const char* name() const override { return "troupe.all_reduce"; }

protected:
  caf::behavior make_behavior() override {
    return {
        [this](Group& x) { join(x); },      [this](AllReduce& x) { return add(x); },
        [this](Partial& x) { receive(x); }, [this](SliceSum& x) { receive(x); },
        [this](Extras& x) { receive(x); },
    };
  }

  void on_exit() override {
    fail({Code::cancelled, "the all-reduce actor was stopped"});
    set_peers({});
  }

private:
  using Promise = caf::typed_response_promise<AllReduced>;
  struct Waiting {
    Buffer values;
    Promise promise;
  };

  void join(Group& x) {
    if (!peers().empty() || failed_) return;
    if (x.self >= x.members.size())
      return fail({Code::invalid_argument,
                   fmt::format("member {} of a group of {}", x.self, x.members.size())});
    set_peers(std::move(x.members));
    place_ = x.self;
    tuning_ = x.tuning;
    for (std::uint32_t i = 0; i < peers().size(); ++i)
      if (i != place_) monitor(peers()[i]);
    next();
  }

  caf::result<AllReduced> add(AllReduce& x) {
    if (failed_) return remoting::to_caf(*failed_);
    if (x.values.empty() || x.values.size() % sizeof(float) != 0)
      return remoting::to_caf(
          {Code::invalid_argument,
           fmt::format("an all-reduce of {} bytes; give one f32 or more", x.values.size())});
    auto promise = make_response_promise<AllReduced>();
    waiting_.push_back({std::move(x.values), promise});
    next();
    return promise;
  }

  /// Begins requests until one has to wait for the other members.
  void next() {
    while (!current_ && !waiting_.empty() && !peers().empty()) {
      Waiting request = std::move(waiting_.front());
      waiting_.pop_front();
      current_ = std::move(request.promise);
      const Status status = begin(std::move(request.values));
      if (!status.ok()) return fail(status.error());
      deliver();
    }
  }

  Status begin(Buffer values) {
    const std::uint64_t elements = values.size() / sizeof(float);
    if (plan_ == nullptr || plan_->spec().bucket_elements[0] != elements) {
      const auto members = static_cast<std::uint32_t>(peers().size());
      TROUPE_ASSIGN(plan_, ReducePlan::make(all_reduce_spec(members, elements, tuning_)));
    }
    TROUPE_TRY(machine_.start(plan_, place_, ++generation_, 0));
    TROUPE_TRY(refused_);
    return machine_.add_gradient(generation_, 0, place_, 0, std::move(values));
  }

  template <class T>
  void receive(T& x) {
    if (failed_) return;
    if (!peers().empty() && !comes_from(x.from)) return;
    const Status status = machine_.receive(std::move(x));
    if (!status.ok() && status.code() != Code::stale_generation) return fail(status.error());
    deliver();
    next();
  }

  void deliver() {
    if (!sum_) return;
    Promise promise = std::move(*current_);
    current_.reset();
    promise.deliver(AllReduced{std::move(*std::exchange(sum_, std::nullopt))});
  }

  void lost(const caf::actor_addr& who) {
    const auto& all = peers();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const caf::actor& peer) { return peer.address() == who; });
    if (found != all.end())
      fail({Code::unavailable, fmt::format("member {} of the group is gone", found - all.begin())});
  }

  void fail(Error error) {
    if (failed_) return;
    const auto reason = remoting::to_caf(error);
    failed_ = std::move(error);
    machine_.abort();
    if (current_) current_->deliver(reason);
    current_.reset();
    for (Waiting& request : waiting_) request.promise.deliver(reason);
    waiting_.clear();
  }

  void bucket_done(std::uint64_t, std::uint32_t, Buffer sum) override { sum_ = std::move(sum); }
  void step_done(std::uint64_t, std::vector<double>) override {}
  void kept_refused(Error reason) override { refused_ = std::move(reason); }

  ReduceMachine machine_;
  std::uint32_t place_ = 0;
  Tuning tuning_;
  std::shared_ptr<const ReducePlan> plan_;
  std::uint64_t generation_ = 0;
  std::deque<Waiting> waiting_;
  std::optional<Promise> current_;
  std::optional<Buffer> sum_;
  Status refused_;
  std::optional<Error> failed_;
};

}  // namespace

caf::actor spawn_all_reduce(caf::actor_system& system, std::shared_ptr<BufferPool> pool) {
  ReduceMachine::Options options;
  options.pool = std::move(pool);
  return system.spawn<AllReduceActor>(std::move(options));
}

}  // namespace troupe::collective
