#include "kernels/internal/network.hpp"

#include <algorithm>

namespace troupe::kernels {

float* Network::at(std::size_t block) const noexcept {
  if (output_place_ != nullptr && block == values_[output_].block) return output_place_;
  return reinterpret_cast<float*>(memory_.data() + arena_.offset(block));
}

std::span<float> Network::floats(const Value& value) const noexcept {
  return {at(value.block), value.activation.floats};
}

bool Network::uses_library() const noexcept {
  return std::ranges::any_of(steps_, [](const Step& x) { return x.kernel->uses_library(); });
}

bool Network::can_be_recorded() const noexcept {
  return std::ranges::none_of(steps_, [](const Step& x) {
    return x.kernel->traits().waits || x.kernel->sums_over_ranks() > 0;
  });
}

std::span<std::int32_t> Network::ids() noexcept {
  const Value& value = values_.front();
  return {reinterpret_cast<std::int32_t*>(memory_.data() + arena_.offset(value.block)),
          value.activation.floats};
}

/// Has the first `count` of rank_sums() summed, and gives the host's copy; another device than the
/// host is waited for.
Result<std::span<const double>> Network::sum_over_ranks(std::size_t count,
                                                        const SumOverRanks& sum) {
  if (backend().is_host()) {
    const std::span<double> sums{rank_sums(), count};
    TROUPE_TRY(sum(sums));
    return std::span<const double>(sums);
  }
  Stream& stream = *options_.stream;
  // Apart: what goes back may still be read when the next sums come.
  auto* const here = reinterpret_cast<double*>(staged_sums_.data());
  double* const back = here + staged_sums_.size() / sizeof(double) / 2;
  TROUPE_TRY(stream.copy(here, rank_sums(), count * sizeof(double)));
  TROUPE_TRY(stream.synchronize());
  std::copy_n(here, count, back);
  TROUPE_TRY(sum({back, count}));
  TROUPE_TRY(stream.copy(rank_sums(), back, count * sizeof(double)));
  return std::span<const double>(back, count);
}

Status Network::forward(const float* parameters, const PassKey* key, const SumOverRanks& sum) {
  std::vector<const float*> inputs;
  for (Step& step : steps_) {
    if (step.kernel->traits().alias) continue;
    inputs.clear();
    for (const std::size_t input : step.inputs) inputs.push_back(at(values_[input].block));
    ForwardPass pass{.inputs = inputs,
                     .parameters = parameters,
                     .output = at(values_[step.output].block),
                     .key = key,
                     .stream = options_.stream};
    if (const std::size_t count = step.kernel->sums_over_ranks(); count > 0) {
      TROUPE_TRY(step.kernel->forward_sums(pass, rank_sums()));
      TROUPE_ASSIGN(const auto sums, sum_over_ranks(count, sum));
      TROUPE_TRY(step.kernel->check_sums(sums));
      pass.sums_over_ranks = rank_sums();
    }
    TROUPE_TRY(step.kernel->forward(pass));
  }
  return {};
}

/// Whether its block is the output's from the first write on, and no larger.
bool Network::output_is_apart() const noexcept {
  const Value& output = values_[output_];
  return output.block != values_[0].block &&
         arena_.bytes(output.block) == output.activation.floats * sizeof(float);
}

Status Network::forward_to(const float* parameters, float* output) {
  if (!backend().is_host() || !output_is_apart()) {
    TROUPE_TRY(forward(parameters));
    const std::span<const float> from = this->output();
    return options_.stream->copy(output, from.data(), from.size_bytes());
  }
  output_place_ = output;
  const Status status = forward(parameters);
  output_place_ = nullptr;
  return status;
}

std::span<float> Network::output_gradient() noexcept {
  return {at(*values_[output_].gradient), values_[output_].activation.floats};
}

std::span<const float> Network::input_gradient() const noexcept {
  return {at(*values_[0].gradient), values_[0].activation.floats};
}

Status Network::backward(const float* parameters, float* gradients,
                         const GradientEnqueued& enqueued, const SumOverRanks& sum) {
  for (const Step& step : steps_)
    TROUPE_TRY(step.kernel->add_statistics({gradients, options_.stream}));
  if (enqueued) {
    for (std::size_t i = model_.parameters().size(); i-- > 0;)
      if (model_.parameters()[i].kind == ParameterKind::statistic)
        TROUPE_TRY(enqueued(model_.parameters()[i]));
  }
  for (std::size_t i = steps_.size(); i-- > 0;) {
    TROUPE_TRY(run_backward(steps_[i], parameters, gradients, sum));
    if (!enqueued) continue;
    for (std::size_t index : steps_[i].completes) TROUPE_TRY(enqueued(model_.parameters()[index]));
  }
  return {};
}

Status Network::run_backward(Step& step, const float* parameters, float* gradients,
                             const SumOverRanks& sum) {
  if (step.runs_backward) {
    std::vector<const float*> inputs;
    for (const std::size_t input : step.inputs) inputs.push_back(at(values_[input].block));
    std::vector<float*> input_gradients;
    for (const Block& block : step.input_gradients)
      input_gradients.push_back(block ? at(*block) : nullptr);
    BackwardPass pass{.inputs = inputs,
                      .output = at(values_[step.output].block),
                      .output_gradient = at(step.output_gradient),
                      .parameters = parameters,
                      .gradients = gradients,
                      .input_gradients = input_gradients,
                      .stream = options_.stream};
    if (const std::size_t count = step.kernel->sums_over_ranks(); count > 0) {
      TROUPE_TRY(step.kernel->backward_sums(pass, rank_sums()));
      TROUPE_ASSIGN([[maybe_unused]] const auto sums, sum_over_ranks(count, sum));
      pass.sums_over_ranks = rank_sums();
    }
    TROUPE_TRY(step.kernel->backward(pass));
  }
  for (const Sum& added : step.sums) {
    if (added.copy)
      TROUPE_TRY(
          options_.stream->copy(at(added.into), at(added.from), added.floats * sizeof(float)));
    else
      TROUPE_TRY(backend().add_into(*options_.stream, at(added.into), at(added.from), added.floats,
                                    options_.threads));
  }
  return {};
}

}  // namespace troupe::kernels
