#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/collective/plan.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::collective {

// What the reduction machines of a job say to each other. All carry the generation, the step and
// the plan's fingerprint; `from` is the sender's place among the nodes of the plan.

/// Node -> owner of a slice (all nodes if it has none): the sums of the sub-trees that I hold.
struct Partial {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint64_t plan = 0;
  std::uint32_t from = 0;
  std::uint32_t slice = 0;
  std::vector<Buffer> parts;  ///< f32, in the order of ReducePlan::parts_of(from)
};

/// Owner -> all: the sum over all ranks.
struct SliceSum {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint64_t plan = 0;
  std::uint32_t from = 0;
  std::uint32_t slice = 0;
  Buffer sum;  ///< f32
};

/// Node -> all: the extra values of my sub-trees; none from a node without a rank. Where the plan
/// has an owner of the extras (ReducePlan::extras_owner), node -> owner; and owner -> all: one row,
/// their sum.
struct Extras {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint64_t plan = 0;
  std::uint32_t from = 0;
  std::vector<double> values;  ///< a row for each of ReducePlan::parts_of(from)
};

template <class Inspector>
auto inspect(Inspector& f, Tuning& x) {
  return f(x.chunk_bytes, x.whole_bytes, x.direct_bytes, x.direct_pair, x.direct_nodes,
           x.owner_bytes, x.least_bytes);
}
template <class Inspector>
auto inspect(Inspector& f, PlanSpec& x) {
  return f(x.node_of_rank, x.nodes, x.bucket_elements, x.extras, x.tuning);
}
template <class Inspector>
auto inspect(Inspector& f, Partial& x) {
  return f(x.generation, x.step, x.plan, x.from, x.slice, x.parts);
}
template <class Inspector>
auto inspect(Inspector& f, SliceSum& x) {
  return f(x.generation, x.step, x.plan, x.from, x.slice, x.sum);
}
template <class Inspector>
auto inspect(Inspector& f, Extras& x) {
  return f(x.generation, x.step, x.plan, x.from, x.values);
}

}  // namespace troupe::collective
