#pragma once

#include <span>
#include <utility>

#include "kernels/model.hpp"
#include "kernels/parameters.hpp"

namespace troupe::kernels {

class Backend;
class Event;

/// The weights that a pass reads: Parameters of the host, or those that a TrainingState has on its
/// device.
///
/// Ownership: borrows them, for a call.
/// Threads:   as those of what it was made from.
class Weights {
public:
  /// A workspace on another device than the host copies them there, at each call.
  Weights(const Parameters& parameters)  // NOLINT: what takes weights takes parameters
      : model_(parameters.model()), values_(parameters.values()) {}

  const Model& model() const noexcept { return model_; }

  // For the library's own use.
  /// Those that lie on `backend`, and are there from `written` on; with neither, on the host.
  Weights(Model model, const float* values, const Backend* backend, const Event* written)
      : model_(std::move(model)),
        values_(values, model_.flat_size()),
        backend_(backend),
        written_(written) {}
  std::span<const float> values() const noexcept { return values_; }
  const Backend* backend() const noexcept { return backend_; }
  const Event* written() const noexcept { return written_; }

private:
  Model model_;
  std::span<const float> values_;
  const Backend* backend_ = nullptr;
  const Event* written_ = nullptr;
};

}  // namespace troupe::kernels
