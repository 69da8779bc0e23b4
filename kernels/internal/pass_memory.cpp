#include "kernels/internal/pass_memory.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace troupe::kernels {

namespace {

// Copies of less take no shorter.
constexpr std::size_t kPieceFloats = std::size_t{1} << 16;

/// Zeros the floats between the parameters.
void clear_padding(const Model& model, std::span<float> values) {
  const auto infos = model.parameters();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const std::size_t begin = infos[i].offset + infos[i].elements;
    const std::size_t end = i + 1 < infos.size() ? infos[i + 1].offset : values.size();
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(begin),
              values.begin() + static_cast<std::ptrdiff_t>(end), 0.0f);
  }
}

template <class T>
T* start_of(Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.data());
}

}  // namespace

PassMemory::PassMemory(ComputeDevice device, Model model)
    : device_(std::move(device)), model_(std::move(model)), on_host_(device_.backend().is_host()) {}

Result<PassMemory> PassMemory::create(const ComputeDevice& device, const Model& model) {
  PassMemory memory(device, model);
  TROUPE_ASSIGN(memory.compute_, memory.backend().make_stream());
  TROUPE_ASSIGN(memory.returns_, memory.backend().make_stream());
  TROUPE_ASSIGN(memory.staged_, memory.backend().allocate_staging(sizeof(Staged)));
  std::construct_at(reinterpret_cast<Staged*>(memory.staged_.data()));
  if (!memory.on_host()) {
    TROUPE_ASSIGN(memory.device_values_, memory.backend().allocate(sizeof(PassValues)));
    TROUPE_ASSIGN(memory.device_loss_, memory.backend().allocate(sizeof(LossStats)));
  }
  return memory;
}

Result<const float*> PassMemory::send_parameters(const Weights& weights) {
  const auto host = weights.values();
  if (weights.written() != nullptr) TROUPE_TRY(compute_->wait(*weights.written()));
  if (on_host() || weights.written() != nullptr) return host.data();
  if (parameters_.empty()) {
    TROUPE_ASSIGN(parameters_, backend().allocate(host.size_bytes()));
  }
  TROUPE_TRY(compute_->copy(parameters_.data(), host.data(), host.size_bytes()));
  return const_cast<const float*>(start_of<float>(parameters_));
}

Result<std::byte*> PassMemory::stage_input(Network& network) {
  if (on_host()) return reinterpret_cast<std::byte*>(network.input().data());
  const std::size_t bytes = network.input().size_bytes();
  if (input_.size() < bytes) {
    TROUPE_ASSIGN(input_, backend().allocate_staging(bytes));
  }
  return input_.data();
}

Status PassMemory::send_input(Network& network) {
  if (on_host()) return {};
  const auto input = network.input();
  return compute_->copy(input.data(), input_.data(), input.size_bytes());
}

Result<const std::byte*> PassMemory::send_labels(const LossFunction& loss) {
  const auto host = loss.labels();
  if (on_host()) return host.data();
  if (labels_.size() < host.size()) {
    TROUPE_ASSIGN(labels_, backend().allocate(host.size()));
  }
  TROUPE_TRY(compute_->copy(labels_.data(), host.data(), host.size()));
  return static_cast<const std::byte*>(labels_.data());
}

Result<const PassValues*> PassMemory::send_values(const StepOptions& step) {
  const PassValues& values = staged().values = {step.key, step.loss_scale};
  if (on_host()) return &values;
  TROUPE_TRY(compute_->copy(device_values_.data(), &values, sizeof(PassValues)));
  return const_cast<const PassValues*>(start_of<PassValues>(device_values_));
}

Status PassMemory::enqueue_loss(Network& network, const LossFunction& loss, const std::byte* labels,
                                std::int64_t samples, const float* scale) {
  float* const gradient = scale != nullptr ? network.output_gradient().data() : nullptr;
  LossStats* const stats = on_host() ? &staged().loss : start_of<LossStats>(device_loss_);
  return backend().compute_loss(
      *compute_, {loss, labels, samples, network.output().data(), gradient, scale, stats});
}

Status PassMemory::bring_loss() {
  if (on_host()) return {};
  return compute_->copy(&staged().loss, device_loss_.data(), sizeof(LossStats));
}

Result<float*> PassMemory::begin_gradients(std::span<float> host) {
  if (on_host()) {
    clear_padding(model_, host);
    return host.data();
  }
  if (gradients_.empty()) {
    TROUPE_ASSIGN(gradients_, backend().allocate(host.size_bytes()));
    TROUPE_TRY(compute_->zero(gradients_.data(), gradients_.size()));
  }
  host_gradients_ = host.data();
  final_from_ = host.size();
  pieces_used_ = 0;
  return start_of<float>(gradients_);
}

Result<bool> PassMemory::add_gradient(const ParameterInfo& parameter) {
  if (pieces_used_ == pieces_.size()) {
    Piece piece;
    TROUPE_ASSIGN(piece.computed, backend().make_event());
    TROUPE_ASSIGN(piece.arrived, backend().make_event());
    pieces_.push_back(std::move(piece));
  }
  Piece& piece = pieces_[pieces_used_];
  if (piece.parameters.empty()) piece.end = final_from_;
  piece.parameters.push_back(&parameter);
  piece.begin = final_from_ = parameter.offset;
  return piece.end - piece.begin >= kPieceFloats || piece.begin == 0;
}

Status PassMemory::bring_gradients() {
  Piece& piece = pieces_[pieces_used_++];
  TROUPE_TRY(compute_->record(*piece.computed));
  TROUPE_TRY(returns_->wait(*piece.computed));
  TROUPE_TRY(returns_->copy(host_gradients_ + piece.begin,
                            start_of<float>(gradients_) + piece.begin,
                            (piece.end - piece.begin) * sizeof(float)));
  return returns_->record(*piece.arrived);
}

Status PassMemory::deliver_gradients(const GradientReady& ready) {
  for (std::size_t i = 0; i < pieces_used_; ++i) {
    TROUPE_TRY(pieces_[i].arrived->synchronize());
    if (ready)
      for (const ParameterInfo* parameter : pieces_[i].parameters) ready(*parameter);
    pieces_[i].parameters.clear();
  }
  return compute_->synchronize();
}

Status PassMemory::settle() {
  for (Piece& piece : pieces_) piece.parameters.clear();
  final_from_ = model_.flat_size();
  pieces_used_ = 0;
  Status computed = compute_->synchronize();
  Status returned = returns_->synchronize();
  return computed.ok() ? std::move(returned) : std::move(computed);
}

}  // namespace troupe::kernels
