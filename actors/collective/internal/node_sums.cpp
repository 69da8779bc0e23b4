#include "actors/collective/internal/node_sums.hpp"

namespace troupe::collective::internal {
namespace {

const float* floats(const Buffer& buffer, std::uint64_t element = 0) {
  return reinterpret_cast<const float*>(buffer.data()) + element;
}

}  // namespace

NodeSums::NodeSums(const ReducePlan& plan, std::uint32_t self)
    : slot_count_(plan.parts().size()), slots_of_(plan.nodes()) {
  std::vector<RankRange> all;
  std::vector<RankRange> expanded;
  std::uint32_t local = 0;
  for (std::uint32_t slot = 0; slot < slot_count_; ++slot) {
    const Part& part = plan.parts()[slot];
    slots_of_[part.node].push_back(slot);
    all.push_back(part.range);
    if (part.node != self) {
      expanded.push_back(part.range);
      owned_operands_.push_back({false, slot});
      continue;
    }
    std::vector<RankRange> leaves;
    for (std::uint32_t rank = part.range.begin; rank < part.range.end; ++rank) {
      leaves.push_back({rank, rank + 1});
      owned_operands_.push_back({true, local + (rank - part.range.begin)});
    }
    expanded.insert(expanded.end(), leaves.begin(), leaves.end());
    local_parts_.push_back({local, leaves.size(), TreeSum(part.range, leaves)});
    local += part.range.size();
  }
  owned_ = std::make_unique<TreeSum>(plan.tree().root(), expanded);
  direct_ = std::make_unique<TreeSum>(plan.tree().root(), all);
}

void NodeSums::add_part(std::uint32_t index, std::span<const Buffer> gradients, const Slice& slice,
                        float* out) {
  LocalPart& part = local_parts_[index];
  pointers_.clear();
  for (const Buffer& gradient : gradients.subspan(part.first, part.count))
    pointers_.push_back(floats(gradient, slice.offset));
  part.sum.run(out, pointers_, slice.elements);
}

void NodeSums::add_owned(std::span<const Buffer> gradients, std::span<const Buffer> parts,
                         const Slice& slice, float* out) {
  pointers_.clear();
  for (const Operand& operand : owned_operands_)
    pointers_.push_back(operand.is_rank ? floats(gradients[operand.index], slice.offset)
                                        : floats(parts[operand.index]));
  owned_->run(out, pointers_, slice.elements);
}

void NodeSums::add_direct(std::span<const Buffer> parts, const Slice& slice, float* out) {
  pointers_.clear();
  for (const Buffer& part : parts) pointers_.push_back(floats(part));
  direct_->run(out, pointers_, slice.elements);
}

std::vector<double> NodeSums::add_extra_parts(std::span<const double> ranks,
                                              std::size_t width) const {
  std::vector<double> rows;
  for (const LocalPart& part : local_parts_) {
    const auto row = part.sum.run(ranks.subspan(part.first * width, part.count * width), width);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

std::vector<double> NodeSums::add_extras(std::span<const double> slots, std::size_t width) const {
  return direct_->run(slots, width);
}

}  // namespace troupe::collective::internal
