#pragma once

#include <cstdint>
#include <vector>

#include "actors/collective/plan.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::collective::internal {

/// What a node has of one step so far. Holds; decides nothing.
struct StepState {
  struct Bucket {
    std::vector<Buffer> gradients;  ///< by local rank; empty where missing
    std::uint32_t ranks_missing = 0;
    std::uint32_t slices_missing = 0;
    Buffer sum;  ///< Delivery::buckets, once one of its slices is there
  };
  struct SliceState {
    std::vector<Buffer> parts;        ///< by slot; empty where missing
    std::uint32_t nodes_missing = 0;  ///< whose parts are still to come (this node's own not)
    bool contributed = false;         ///< this node's parts are in, or sent
    bool done = false;
    Buffer sum;  ///< from its owner, not yet handed on
  };

  std::vector<Bucket> buckets;
  std::vector<SliceState> slices;
  std::uint32_t buckets_missing = 0;

  std::vector<double> rank_extras;    ///< a row for each local rank
  std::vector<char> rank_has_extras;  ///< by local rank
  std::uint32_t rank_extras_missing = 0;
  std::vector<double> slot_extras;        ///< a row for each slot
  std::vector<char> node_has_extras;      ///< by node
  std::uint32_t node_extras_missing = 0;  ///< what is still to come: rows, or the owner's sum
  std::vector<double> extras_sum;         ///< of or from the owner, once it is there
  bool extras_told = false;               ///< by the owner, to all

  /// Back to the beginning of a step of node `self`; lets go of all buffers.
  void reset(const ReducePlan& plan, std::uint32_t self);
};

}  // namespace troupe::collective::internal
