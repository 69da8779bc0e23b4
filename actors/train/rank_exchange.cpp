#include "actors/train/rank_exchange.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {

Status RankExchange::prepare(const kernels::RankSums& sums, const collective::PlanSpec& placement) {
  sums_ = sums;
  if (sums_.calls == 0) return {};
  collective::PlanSpec spec = placement;
  spec.bucket_elements.clear();
  spec.extras = static_cast<std::uint32_t>(sums_.widest);
  TROUPE_ASSIGN(plan_, collective::ReducePlan::make(std::move(spec)));
  return {};
}

Status RankExchange::start(std::uint32_t node, std::uint64_t generation, std::uint64_t step) {
  if (plan_ == nullptr) return {};
  return machine_.start(plan_, node, generation, step * sums_.calls);
}

void RankExchange::abort() {
  machine_.abort();
  for (auto& [rank, promise] : std::exchange(waiting_, {}))
    promise.deliver(remoting::to_caf(
        {Code::stale_generation, "the step ended before all ranks had added to a sum"}));
}

caf::result<SummedValues> RankExchange::add(RankValues x) {
  if (x.call >= sums_.calls || x.values.size() > sums_.widest)
    return remoting::to_caf(
        {Code::invalid_argument,
         fmt::format("rank {} asks for sum {} of {} values, but a step has "
                     "{} of at most {}",
                     x.rank, x.call, x.values.size(), sums_.calls, sums_.widest)});
  if (!machine_.active() || x.generation != machine_.generation())
    return remoting::to_caf(
        {Code::stale_generation, fmt::format("generation {} has ended", x.generation)});
  auto promise = self_->make_response_promise<SummedValues>();
  waiting_[x.rank] = promise;
  x.values.resize(sums_.widest);
  if (const auto status =
          machine_.add_extras(x.generation, x.step * sums_.calls + x.call, x.rank, x.values);
      !status.ok()) {
    waiting_.erase(x.rank);
    return remoting::to_caf(status.error());
  }
  return promise;
}

void RankExchange::step_done(std::uint64_t, std::vector<double> extras) {
  for (auto& [rank, promise] : std::exchange(waiting_, {})) promise.deliver(SummedValues{extras});
}

void RankExchange::send(std::uint32_t to, collective::Partial message) {
  peers_.send(to, std::move(message));
}
void RankExchange::send(std::uint32_t to, collective::SliceSum message) {
  peers_.send(to, std::move(message));
}
void RankExchange::send(std::uint32_t to, collective::Extras message) {
  peers_.send(to, std::move(message));
}

}  // namespace troupe::train
