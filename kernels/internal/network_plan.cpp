// Which of a network's values share memory, and when what is computed of gradients.
#include <algorithm>

#include "kernels/internal/network.hpp"

namespace troupe::kernels {

Status Network::plan() {
  plan_forward();
  if (options_.mode == Mode::training) plan_backward();
  arena_.place();
  TROUPE_ASSIGN(memory_, backend().allocate(std::max<std::size_t>(arena_.size(), 1)));
  TROUPE_ASSIGN(Buffer scratch, backend().allocate_scratch(scratch_->reserved()));
  scratch_->take(std::move(scratch));
  TROUPE_TRY(allocate_rank_sums());
  // Lanes and channels that only fill up a block are read, if never used.
  return options_.stream->zero(memory_.data(), memory_.size());
}

Status Network::allocate_rank_sums() {
  std::size_t most = 0;
  for (const Step& step : steps_) most = std::max(most, step.kernel->sums_over_ranks());
  if (most == 0) return {};
  TROUPE_ASSIGN(rank_sums_, backend().allocate(most * sizeof(double)));
  if (backend().is_host()) return {};
  TROUPE_ASSIGN(staged_sums_, backend().allocate_staging(2 * most * sizeof(double)));
  return {};
}

/// Events: 0 the input is written, i + 1 step i forward, n + 1 the output is read, and then the
/// backward pass.
void Network::plan_forward() {
  const auto bytes = [&](std::size_t value) {
    return values_[value].activation.floats * sizeof(float);
  };
  std::vector<std::size_t> consumers(values_.size());
  for (const Step& step : steps_)
    for (const std::size_t input : step.inputs) ++consumers[input];
  std::vector<std::size_t> last_read(values_.size());  // the last step that does
  for (std::size_t i = 0; i < steps_.size(); ++i)
    for (const std::size_t input : steps_[i].inputs) last_read[input] = i;
  last_read[output_] = steps_.size();
  values_[0].block = arena_.add(bytes(0), 0);
  // Whether nothing after step `i` reads what is in the block of `value`, under whatever name.
  const auto is_last_reader = [&](std::size_t i, std::size_t value) {
    for (std::size_t other = 0; other < steps_[i].output; ++other)
      if (values_[other].block == values_[value].block && last_read[other] > i) return false;
    return true;
  };
  std::vector<bool> kept(values_.size());  // by the backward pass of what wrote it
  kept[0] = true;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const KernelTraits traits = step.kernel->traits();
    const bool training = options_.mode == Mode::training;
    const std::size_t input = step.inputs[training || !traits.in_place ? 0 : traits.in_place_input];
    const bool overwrites =
        traits.in_place && input != 0 &&
        (training ? consumers[input] == 1 && !kept[input] && !traits.backward_reads_input
                  : is_last_reader(i, input));
    Value& output = values_[step.output];
    output.block =
        overwrites || traits.alias ? values_[input].block : arena_.add(bytes(step.output), i + 1);
    // A name for another's memory is as precious as that.
    kept[step.output] = (traits.alias && (kept[input] || consumers[input] > 1)) ||
                        (training && traits.backward_reads_output);
    for (const std::size_t from : step.inputs) arena_.use(values_[from].block, i + 1);
    arena_.use(output.block, i + 1);
  }
  arena_.use(values_[output_].block, steps_.size() + 1);
}

void Network::plan_backward() {
  const std::size_t n = steps_.size();
  std::vector<Block> gradient(values_.size());
  std::vector<std::size_t> holders;  // values whose gradient is in the block, not yet read
  const auto hold = [&](std::size_t block) {
    holders.resize(std::max(holders.size(), block + 1));
    ++holders[block];
  };
  const auto fresh = [&](std::size_t value, std::size_t time) {
    return arena_.add(values_[value].activation.floats * sizeof(float), time);
  };
  gradient[output_] = fresh(output_, n + 1);
  values_[output_].gradient = gradient[output_];
  hold(*gradient[output_]);
  for (std::size_t i = n; i-- > 0;) {
    Step& step = steps_[i];
    const std::size_t time = backward_time(i);
    const KernelTraits traits = step.kernel->traits();
    const bool wanted = std::ranges::any_of(
        step.inputs, [&](std::size_t input) { return values_[input].wants_gradient; });
    // Before the first layer with parameters there is nothing to do.
    if (!gradient[step.output] || (!wanted && !step.trained)) continue;
    step.runs_backward = !traits.passes_gradient;
    step.output_gradient = *gradient[step.output];
    arena_.use(step.output_gradient, time);
    --holders[step.output_gradient];
    if (step.runs_backward) {
      if (traits.backward_reads_output) arena_.use(values_[step.output].block, time);
      if (traits.backward_reads_input)
        for (const std::size_t input : step.inputs) arena_.use(values_[input].block, time);
    }
    step.input_gradients.resize(step.inputs.size());
    Block shared;  // what all inputs get
    if (traits.passes_gradient) shared = step.output_gradient;
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      const std::size_t input = step.inputs[k];
      if (!values_[input].wants_gradient) continue;
      std::size_t given = 0;
      bool owned = false;  // nobody else reads it
      if (shared) {
        given = *shared;
      } else {
        const bool in_place = traits.in_place && holders[step.output_gradient] == 0;
        given = in_place ? step.output_gradient : fresh(input, time);
        arena_.use(given, time);
        step.input_gradients[k] = given;
        owned = !traits.one_gradient;
        if (traits.one_gradient) shared = given;
      }
      if (const Block before = gradient[input]) {
        const std::size_t floats = values_[input].activation.floats;
        if (!owned) {
          // Another's too: the sum needs a place of its own.
          const std::size_t sum = fresh(input, time);
          step.sums.push_back({sum, given, floats, /*copy=*/true});
          given = sum;
        }
        step.sums.push_back({given, *before, floats, /*copy=*/false});
        arena_.use(*before, time);
        arena_.use(given, time);
        --holders[*before];
      }
      gradient[input] = given;
      hold(given);
    }
  }
  values_[0].gradient = gradient[0];
  if (options_.input_gradient && gradient[0]) arena_.use(*gradient[0], backward_time(0) + 1);
}

}  // namespace troupe::kernels
