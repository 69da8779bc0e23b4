#include "actors/collective/plan.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace troupe::collective {
namespace {

// Far above what a job needs; they keep a plan from another node from taking all memory.
constexpr std::size_t kMaxRanks = 65536;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxSlices = std::uint64_t{1} << 20;
constexpr std::uint32_t kMaxExtras = 4096;

/// Slices begin at multiples of this many floats: a cache line, and the start of a vector.
constexpr std::uint64_t kAlign = 16;
constexpr std::uint64_t kMinChunkBytes = 4096;

std::uint64_t round_up(std::uint64_t value) {
  return (value + kAlign - 1) / kAlign * kAlign;
}

class Mixer {
public:
  void add(std::uint64_t value) {
    hash_ = std::rotl(hash_ ^ (value * 0x9e3779b97f4a7c15), 29) * 0xbf58476d1ce4e5b9;
  }
  std::uint64_t value() const { return hash_ ^ (hash_ >> 32); }

private:
  std::uint64_t hash_ = 0x243f6a8885a308d3;
};

std::uint64_t fingerprint_of(const PlanSpec& spec) {
  Mixer mixer;
  mixer.add(spec.nodes);
  mixer.add(spec.extras);
  mixer.add(spec.tuning.chunk_bytes);
  mixer.add(spec.tuning.whole_bytes);
  mixer.add(spec.tuning.direct_bytes);
  mixer.add(spec.tuning.direct_pair ? 1 : 0);
  mixer.add(spec.tuning.direct_nodes);
  mixer.add(spec.tuning.owner_bytes);
  mixer.add(spec.tuning.least_bytes);
  mixer.add(spec.node_of_rank.size());
  for (const auto node : spec.node_of_rank) mixer.add(node);
  mixer.add(spec.bucket_elements.size());
  for (const auto elements : spec.bucket_elements) mixer.add(elements);
  return mixer.value();
}

Status check_placement(const PlanSpec& spec) {
  if (spec.node_of_rank.empty() || spec.node_of_rank.size() > kMaxRanks)
    return {Code::invalid_argument, fmt::format("a reduction over {} ranks; use 1 to {}",
                                                spec.node_of_rank.size(), kMaxRanks)};
  if (spec.nodes == 0 || spec.nodes > kMaxRanks)
    return {Code::invalid_argument,
            fmt::format("a reduction among {} nodes; use 1 to {}", spec.nodes, kMaxRanks)};
  for (std::size_t rank = 0; rank < spec.node_of_rank.size(); ++rank)
    if (spec.node_of_rank[rank] >= spec.nodes)
      return {Code::invalid_argument,
              fmt::format("rank {} is placed on node {}, but the nodes are 0 to {}", rank,
                          spec.node_of_rank[rank], spec.nodes - 1)};
  return {};
}

Status check_layout(const PlanSpec& spec) {
  if (spec.extras > kMaxExtras)
    return {Code::invalid_argument,
            fmt::format("{} extra values per rank; use at most {}", spec.extras, kMaxExtras)};
  if (spec.bucket_elements.empty() && spec.extras == 0)
    return {Code::invalid_argument, "a reduction with no bucket and no extra values; give it one"};
  if (spec.tuning.chunk_bytes < kMinChunkBytes)
    return {Code::invalid_argument, fmt::format("chunks of {} bytes; use at least {}",
                                                spec.tuning.chunk_bytes, kMinChunkBytes)};
  std::uint64_t total = 0;
  std::uint64_t slices = 0;
  for (std::size_t b = 0; b < spec.bucket_elements.size(); ++b) {
    const std::uint64_t elements = spec.bucket_elements[b];
    if (elements == 0 || elements > kMaxElements - total)
      return {Code::invalid_argument,
              fmt::format("bucket {} has {} elements; use at least 1, and at most {} in all", b,
                          elements, kMaxElements)};
    total += elements;
    slices += elements * sizeof(float) / spec.tuning.chunk_bytes + spec.nodes;
  }
  if (slices > kMaxSlices)
    return {Code::invalid_argument,
            fmt::format("the buckets would be cut into about {} slices; use larger chunks than {} "
                        "bytes or fewer buckets (at most {} slices)",
                        slices, spec.tuning.chunk_bytes, kMaxSlices)};
  return {};
}

}  // namespace

PlanSpec all_reduce_spec(std::uint32_t nodes, std::uint64_t elements, const Tuning& tuning) {
  PlanSpec spec;
  spec.nodes = nodes;
  for (std::uint32_t node = 0; node < nodes; ++node) spec.node_of_rank.push_back(node);
  spec.bucket_elements = {elements};
  spec.tuning = tuning;
  return spec;
}

Result<std::shared_ptr<const ReducePlan>> ReducePlan::make(PlanSpec spec) {
  TROUPE_TRY(check_placement(spec));
  TROUPE_TRY(check_layout(spec));
  return std::shared_ptr<const ReducePlan>(new ReducePlan(std::move(spec)));
}

ReducePlan::ReducePlan(PlanSpec spec)
    : spec_(std::move(spec)), tree_(static_cast<std::uint32_t>(spec_.node_of_rank.size())) {
  place_ranks();
  for (std::uint32_t bucket = 0; bucket < buckets(); ++bucket) {
    first_slice_.push_back(static_cast<std::uint32_t>(slices_.size()));
    cut_bucket(bucket);
  }
  first_slice_.push_back(static_cast<std::uint32_t>(slices_.size()));
  fingerprint_ = fingerprint_of(spec_);
}

void ReducePlan::place_ranks() {
  ranks_of_.resize(spec_.nodes);
  for (std::uint32_t rank = 0; rank < tree_.ranks(); ++rank)
    ranks_of_[spec_.node_of_rank[rank]].push_back(rank);
  for (std::uint32_t node = 0; node < spec_.nodes; ++node) {
    parts_of_.push_back(tree_.cover(ranks_of_[node]));
    if (!ranks_of_[node].empty()) contributors_.push_back(node);
    for (std::uint32_t i = 0; i < parts_of_[node].size(); ++i)
      parts_.push_back({parts_of_[node][i], node, i});
  }
  std::sort(parts_.begin(), parts_.end(),
            [](const Part& a, const Part& b) { return a.range.begin < b.range.begin; });
}

void ReducePlan::cut_bucket(std::uint32_t bucket) {
  const std::uint64_t elements = spec_.bucket_elements[bucket];
  const std::uint64_t bytes = elements * sizeof(float);
  const auto& tuning = spec_.tuning;
  const std::size_t owners = contributors_.size();
  const bool pair = spec_.nodes == 2 && owners == 2 && tuning.direct_pair;
  const bool small = spec_.nodes <= tuning.direct_nodes &&
                     bytes <= tuning.direct_bytes / std::max(1u, spec_.nodes - 1);
  if (owners > 1 && (small || pair)) return cut_run({bucket, Slice::kAllNodes, 0, elements});
  const std::uint64_t count = owners_of(bytes);
  const std::uint64_t share = round_up((elements + count - 1) / count);
  // Buckets that do not need all the owners take them in turn.
  for (std::uint64_t i = 0; i < count && share * i < elements; ++i)
    cut_run({bucket, contributors_[(bucket * count + i) % owners], share * i,
             std::min(share, elements - share * i)});
}

/// An owner takes in, and sends, its share of the bucket for each other node, and sends it in as
/// many messages. More owners have less to carry each, until their messages cost more than their
/// bytes.
std::uint64_t ReducePlan::owners_of(std::uint64_t bytes) const {
  const auto& tuning = spec_.tuning;
  const std::uint64_t most = contributors_.size();
  if (bytes <= tuning.whole_bytes && bytes * (most - 1) <= tuning.owner_bytes) return 1;
  return std::clamp<std::uint64_t>(bytes / std::max<std::uint64_t>(1, tuning.least_bytes), 1, most);
}

void ReducePlan::cut_run(Slice run) {
  // Equal chunks rather than full ones and a rest: the last to arrive should not be the longest.
  const std::uint64_t chunk = spec_.tuning.chunk_bytes / sizeof(float);
  const std::uint64_t count = (run.elements + chunk - 1) / chunk;
  const std::uint64_t step = round_up((run.elements + count - 1) / count);
  for (std::uint64_t at = 0; at < run.elements; at += step)
    slices_.push_back({run.bucket, run.owner, run.offset + at, std::min(step, run.elements - at)});
}

}  // namespace troupe::collective
