#include <cmath>
#include <string>
#include <vector>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/cpu/internal/batch_norm_loops.hpp"
#include "kernels/cpu/internal/channel_runs.hpp"
#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/internal/batch_norm_sums.hpp"

namespace troupe::kernels::cpu {

namespace {

// Of the layer's parameters.
enum : std::size_t { kWeight, kBias, kRunningMean, kRunningVariance };

/// A batch norm, alone or with the ReLU that follows it, over this pass's values or, if it is
/// synchronized, over those of all ranks.
class BatchNormKernel final : public LayerKernel {
public:
  BatchNormKernel(const KernelRequest& request, const Activation& data, const ChannelRuns& runs)
      : name_(describe(request.layers[0].spec)),
        threads_(request.threads),
        training_(request.mode == Mode::training),
        batch_(static_cast<float>(request.batch())),
        runs_(runs) {
    const auto& spec = std::get<BatchNorm>(request.layers[0].spec);
    epsilon_ = spec.epsilon;
    synchronized_ = spec.synchronized && training_;
    relu_ = request.layers.size() > 1;
    for (std::size_t i = 0; i < 4; ++i) offsets_[i] = request.offset_of(i);
    inputs_ = {data};
    output_ = data;
    library_ = data.layout != Activation::Layout::plain;
    channels_.resize(runs_.count());
    for (ChannelCoefficients& run : channels_) run.relu = relu_;
    deviations_.resize(runs_.channels);
    if (!training_) return;
    means_.resize(runs_.channels);
    variances_.resize(runs_.channels);
    sums_.resize(BatchNormSums::width(runs_.channels));
  }

  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }
  // How the values lie, and so in which order they are added, is the library's wish.
  bool uses_library() const noexcept override { return library_; }
  std::size_t sums_over_ranks() const noexcept override {
    return synchronized_ ? BatchNormSums::width(runs_.channels) : 0;
  }

  Status check_sums(std::span<const double> sums) const override {
    return BatchNormSums::check(name_, sums);
  }

  Status forward_sums(const ForwardPass& pass, double* values) override {
    const BatchNormSums sums{values, runs_.channels};
    sums.count() = static_cast<double>(runs_.batch * runs_.area);
    each_run([&](std::size_t i, std::size_t first) {
      run_sums(runs_, i, pass.input(), sums.first() + first, sums.second() + first);
    });
    return {};
  }

  Status forward(const ForwardPass& pass) override {
    if (training_) {
      const double* sums = pass.sums_over_ranks;
      if (!synchronized_) {
        TROUPE_TRY(forward_sums(pass, sums_.data()));
        sums = sums_.data();
      }
      TROUPE_TRY(find_moments(sums));
    }
    each_run([&](std::size_t i, std::size_t first) {
      set_coefficients(i, first, pass.parameters);
      normalize_run(runs_, i, pass.input(), channels_[i], pass.output);
    });
    return {};
  }

  Status backward_sums(const BackwardPass& pass, double* values) override {
    const BatchNormSums sums{values, runs_.channels};
    sums.count() = static_cast<double>(runs_.batch * runs_.area);
    each_run([&](std::size_t i, std::size_t first) {
      run_gradient_sums(runs_, i, pass.input(), pass.output_gradient, channels_[i],
                        sums.first() + first, sums.second() + first);
      for (std::size_t c = first; c < first + runs_.channels_in(i); ++c) {
        sums.second()[c] *= deviations_[c];
        pass.gradients[offsets_[kBias] + c] = static_cast<float>(sums.first()[c]);
        pass.gradients[offsets_[kWeight] + c] = static_cast<float>(sums.second()[c]);
      }
    });
    return {};
  }

  /// With z the normalised values: dx = weight (dy - mean(dy) - z mean(dy z)) / deviation.
  Status backward(const BackwardPass& pass) override {
    const double* values = pass.sums_over_ranks;
    if (!synchronized_) {
      TROUPE_TRY(backward_sums(pass, sums_.data()));
      values = sums_.data();
    }
    if (pass.input_gradient() == nullptr) return {};
    const double* const first_sums = values + 1;
    const double* const second_sums = first_sums + runs_.channels;
    each_run([&](std::size_t i, std::size_t first) {
      GradientCoefficients gradients;
      for (std::size_t c = 0; c < runs_.channels_in(i); ++c) {
        gradients.mean_dy[c] = static_cast<float>(first_sums[first + c] / values[0]);
        gradients.slope[c] = static_cast<float>(channels_[i].scale[c] * deviations_[first + c] *
                                                (second_sums[first + c] / values[0]));
      }
      run_gradient(runs_, i, pass.input(), pass.output_gradient, channels_[i], gradients,
                   pass.input_gradient());
    });
    return {};
  }

  Status add_statistics(const StatisticsPass& pass) const override {
    if (!training_) return {};
    for (std::size_t c = 0; c < runs_.channels; ++c) {
      pass.gradients[offsets_[kRunningMean] + c] = batch_ * static_cast<float>(means_[c]);
      pass.gradients[offsets_[kRunningVariance] + c] =
          batch_ * static_cast<float>(variances_[c] * unbiased_);
    }
    return {};
  }

private:
  /// Calls `body(run, its first channel)`, runs side by side.
  template <class Body>
  void each_run(const Body& body) {
    parallel_each(threads_, runs_.count(),
                  [&](std::size_t i, std::size_t) { body(i, runs_.first_channel(i)); });
  }

  Status find_moments(const double* sums) {
    TROUPE_TRY(BatchNormSums::check(name_, {sums, BatchNormSums::width(runs_.channels)}));
    const double n = sums[0];
    for (std::size_t c = 0; c < runs_.channels; ++c) {
      means_[c] = sums[1 + c] / n;
      const double variance = sums[1 + runs_.channels + c] / n - means_[c] * means_[c];
      variances_[c] = variance < 0.0 ? 0.0 : variance;  // NaN stays
    }
    unbiased_ = n / (n - 1.0);
    return {};
  }

  void set_coefficients(std::size_t i, std::size_t first, const float* parameters) {
    ChannelCoefficients& run = channels_[i];
    for (std::size_t j = 0; j < runs_.channels_in(i); ++j) {
      const std::size_t c = first + j;
      const double mean = training_ ? means_[c] : parameters[offsets_[kRunningMean] + c];
      const double variance =
          training_ ? variances_[c] : parameters[offsets_[kRunningVariance] + c];
      deviations_[c] = 1.0 / std::sqrt(variance + static_cast<double>(epsilon_));
      run.mean[j] = static_cast<float>(mean);
      run.scale[j] = static_cast<float>(parameters[offsets_[kWeight] + c] * deviations_[c]);
      run.shift[j] = parameters[offsets_[kBias] + c];
    }
  }

  std::string name_;
  int threads_;
  bool training_;
  float batch_;
  ChannelRuns runs_;
  float epsilon_ = 0.0f;
  bool synchronized_ = false;
  bool relu_ = false;
  bool library_ = false;
  std::size_t offsets_[4] = {};
  std::vector<ChannelCoefficients> channels_;  ///< of each run
  std::vector<double> deviations_;             ///< 1 / sqrt(variance + epsilon), of each channel
  std::vector<double> means_, variances_;      ///< of the pass
  double unbiased_ = 1.0;                      ///< what makes the variances so
  std::vector<double> sums_;                   ///< where they are not for all ranks
};

}  // namespace

MadeKernel make_own_batch_norm(const KernelRequest& request) {
  Activation data = request.input();
  auto runs = channel_runs(data);
  if (!runs || request.choice == KernelChoice::portable) {
    data = plain_activation(request.input().shape);
    runs = channel_runs(data);
  }
  return MadeKernel(std::make_unique<BatchNormKernel>(request, data, *runs));
}

}  // namespace troupe::kernels::cpu
