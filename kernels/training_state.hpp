#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/compute_device.hpp"
#include "kernels/gradient.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/parameters.hpp"
#include "kernels/weights.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

/// A model's weights and its optimizer's state, where they are used: in the memory of the device
/// that computes. Updates are done there, and passes read the weights there; what goes up is the
/// gradient, once for each update. On the host they stay in the buffers that they were given in.
///
/// The bits are the same on every device.
///
/// Ownership: owns them and the optimizer, and keeps the device open. Gradients are borrowed for a
///            call.
/// Threads:   one call at a time, on any thread, but for weights() and model(): any number of
///            passes may read weights while contents() and copy() do. update() and write() want all
///            passes that read to have returned.
/// Device:    update() returns when all is enqueued; a pass that begins later waits for it on the
///            device, and all other calls here do.
/// Failure:   as each says. After one of update() or write() that is not said to have changed
///            nothing, nobody knows what is there: update(), contents() and copy() return it from
///            then on, until a write() succeeds. Work of a device that fails later than its call
///            tells the next one that waits, here or of a pass.
class TrainingState {
public:
  /// On the host.
  struct Contents {
    Parameters parameters;
    std::vector<Parameters> optimizer_state;  ///< as Optimizer::state_names()
  };

  /// Asks the device for what create() will take, and keeps it ready there: whoever makes great
  /// weights on the host first waits long for an error. Nothing on the host. Errors:
  /// `resource_exhausted`, those of the device.
  static Status reserve(const ComputeDevice& device, const Optimizer& optimizer);

  /// Begins with `initial`, whose buffers it takes over on the host. Errors: `shape_mismatch` if
  /// that is not of the optimizer and its model, `resource_exhausted`, those of the device.
  static Result<TrainingState> create(ComputeDevice device,
                                      std::unique_ptr<const Optimizer> optimizer, Contents initial);

  TrainingState(TrainingState&&) noexcept;
  TrainingState& operator=(TrainingState&&) noexcept;
  ~TrainingState();

  /// For passes on the same device.
  Weights weights() const;

  /// One update as Optimizer::update() does it, and then update_statistics() with each run.
  /// Errors: those of the device, `resource_exhausted`.
  Status update(const UpdateFactors& factors, std::span<const GradientRun> gradient,
                float statistic_scale);

  /// What is there now. On the host that is the very memory, which the next update changes;
  /// elsewhere a copy. Errors: those of the device, `resource_exhausted`.
  Result<Contents> contents() const;
  /// A copy in fresh memory, everywhere.
  Result<Contents> copy() const;
  /// Replaces all by what buffers of contents() hold. Error: `shape_mismatch` if they are of
  /// another number, or shorter; nothing changed then.
  Status write(const Buffer& parameters, std::span<const Buffer> optimizer_state);

  const Model& model() const noexcept;
  const Optimizer& optimizer() const noexcept;

private:
  struct State;
  explicit TrainingState(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::kernels
