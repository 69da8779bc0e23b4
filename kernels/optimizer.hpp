#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/gradient.hpp"
#include "kernels/model.hpp"
#include "kernels/parameters.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// What can be chosen about an optimizer; names and defaults as in torch.optim, or as the paper
/// has them. One that is of other optimizers keeps its default.
struct OptimizerOptions {
  std::string name = "sgd";          ///< one of optimizer_names()
  double momentum = 0.0;             ///< sgd, lars
  bool nesterov = false;             ///< sgd
  double beta1 = 0.9;                ///< adam, adamw, lamb: share that stays of the mean
  double beta2 = 0.999;              ///< adam, adamw, lamb: and of the mean square
  double epsilon = 1e-8;             ///< adam, adamw, lamb: added to the root of the mean square
  double trust_coefficient = 0.001;  ///< lars
  double weight_decay = 0.0;
  /// Whether parameters of one dimension (biases, and the scales of normalization) decay. If not,
  /// lamb and lars take their update as it is too, not scaled by a ratio of norms.
  bool decay_vectors = true;

  /// Errors: `invalid_argument` naming the field; `not_found` with the optimizers that are there.
  Status validate() const;
};

/// "sgd", "adam", "adamw", "lamb", "lars".
std::span<const std::string_view> optimizer_names() noexcept;

/// What an update takes that is not the same at all of them.
struct UpdateFactors {
  std::uint64_t update = 1;  ///< its number, from 1; steps without an update do not count
  double learning_rate = 0;
  float gradient_scale = 1;  ///< gradients are multiplied by it: 1 / global batch, as they are of
                             ///< the sum over samples, times clip_factor()
};

/// Changes a model's trained parameters along a gradient. Statistics are update_statistics()'.
///
/// An update gives the same bits for any split of the gradient into runs, and on any machine: each
/// element is computed by itself with separate roundings, norms are added up as SquareSum says, and
/// what is raised to a power is multiplied out in double.
///
/// Ownership: holds no state; that is the caller's, in buffers laid out as the parameters.
/// Threads:   any number may call it at a time, on parameters of their own.
class Optimizer {
public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One for each buffer of state, in their order, as torch.optim calls it: "exp_avg".
  virtual std::span<const std::string_view> state_names() const noexcept = 0;

  /// The state before the first update: zeros. Errors: `resource_exhausted`.
  Result<std::vector<Parameters>> initial_state() const;

  /// One update of `parameters` and `state`, in place. `gradient` is whole, as its norm may matter;
  /// what lies behind the trained elements is left alone. A gradient that is not whole, and
  /// parameters or state of another size, abort.
  void update(const UpdateFactors& factors, std::span<const GradientRun> gradient,
              Parameters& parameters, std::span<Parameters> state) const;
  /// The same where they lie: `parameters`, and each of `state`, have model().flat_size() floats.
  void update(const UpdateFactors& factors, std::span<const GradientRun> gradient,
              float* parameters, std::span<float* const> state) const;

  const Model& model() const noexcept { return model_; }
  const OptimizerOptions& options() const noexcept { return options_; }

protected:
  Optimizer(Model model, OptimizerOptions options)
      : model_(std::move(model)), options_(std::move(options)) {}

private:
  virtual void apply(const UpdateFactors& factors, std::span<const GradientRun> gradient,
                     float* parameters, std::span<float* const> state) const = 0;

  const Model model_;
  const OptimizerOptions options_;
};

/// Errors: as OptimizerOptions::validate.
///
/// With g = gradient * gradient_scale, w the parameter, d the weight decay and t the update:
///
///     sgd    g += d w; buf = momentum buf + g; w -= lr (nesterov ? g + momentum buf : buf).
///            Without momentum there is no state. As torch.optim.SGD.
///     adam   g += d w; m = m + (1 - beta1)(g - m); v = beta2 v + (1 - beta2) g^2;
///            w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon).
///            As torch.optim.Adam: Kingma and Ba, "Adam" (2014), algorithm 1.
///     adamw  w -= lr d w; then adam without decay. As torch.optim.AdamW: Loshchilov and Hutter,
///            "Decoupled weight decay regularization" (2017), algorithm 2.
///     lamb   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + d w, with m and v as
///            adam's; w -= lr |w| / |u| u, by parameter. You et al., "Large batch optimization for
///            deep learning: training BERT in 76 minutes" (2019), algorithm 2, phi the identity.
///     lars   r = trust_coefficient |w| / (|g| + d |w|), by parameter; buf = momentum buf + lr r (g
///            + d w); w -= buf. You, Gitman, Ginsburg, "Large batch training of convolutional
///            networks" (2017), algorithm 1.
///
/// A ratio is 1 where a norm in it is 0.
Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerOptions& options,
                                                  const Model& model);

}  // namespace troupe::kernels
