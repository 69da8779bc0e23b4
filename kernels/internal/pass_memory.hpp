#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/compute_device.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/internal/network.hpp"
#include "kernels/model.hpp"
#include "kernels/weights.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

/// What kernels of a training pass read that is another at each step; the device's.
struct PassValues {
  PassKey key;
  float loss_scale = 1.0f;
};

/// What a workspace's passes take from the host and give back to it, and the streams that this
/// goes through. On the CPU both sides are the same memory, and nothing is copied.
///
/// Copies to the host go through a stream of their own: gradients come while earlier layers' are
/// computed.
///
/// Ownership: host memory is borrowed until settle() or deliver_gradients().
/// Threads:   one at a time, any.
class PassMemory {
public:
  static Result<PassMemory> create(const ComputeDevice& device, const Model& model);

  Stream& stream() noexcept { return *compute_; }

  /// Where the device has all of the model's parameters: those that lie there already, or a copy.
  Result<const float*> send_parameters(const Weights& weights);
  /// Where the host writes a batch for `network`, and the batch on its way.
  Result<std::byte*> stage_input(Network& network);
  Status send_input(Network& network);
  /// Those that `loss` has read.
  Result<const std::byte*> send_labels(const LossFunction& loss);
  /// Those of a step; the same place for each.
  Result<const PassValues*> send_values(const StepOptions& step);

  /// The loss of `network`'s output, and (unless `scale` is null) its gradient.
  Status enqueue_loss(Network& network, const LossFunction& loss, const std::byte* labels,
                      std::int64_t samples, const float* scale);
  /// Copies the loss to the host, where it is after settle() or deliver_gradients().
  Status bring_loss();
  const LossStats& loss() const noexcept { return staged().loss; }

  /// Where backward writes gradients that will be at `host`: all of the model's, and the padding
  /// between them zero.
  Result<float*> begin_gradients(std::span<float> host);
  /// Those of `parameter` and what comes after it are final where the stream is now. Gives whether
  /// there are enough of them for a copy, bring_gradients(), which must then be next.
  Result<bool> add_gradient(const ParameterInfo& parameter);
  Status bring_gradients();
  /// Waits for them in the order they come, and tells.
  Status deliver_gradients(const GradientReady& ready);

  /// Returns when nothing is under way. Gradients may be begun again.
  Status settle();

private:
  PassMemory(ComputeDevice device, Model model);
  Backend& backend() const { return device_.backend(); }
  bool on_host() const noexcept { return on_host_; }

  /// The host's side of what is small.
  struct Staged {
    PassValues values;
    LossStats loss;
  };
  Staged& staged() const noexcept {
    return *reinterpret_cast<Staged*>(const_cast<std::byte*>(staged_.data()));
  }

  /// Gradients that are copied as one.
  struct Piece {
    std::size_t begin = 0, end = 0;                ///< floats
    std::vector<const ParameterInfo*> parameters;  ///< as they became final
    std::unique_ptr<Event> computed, arrived;
  };

  ComputeDevice device_;
  Model model_;
  bool on_host_;
  std::unique_ptr<Stream> compute_, returns_;
  Buffer parameters_, gradients_, input_, labels_;
  Buffer device_values_, device_loss_;
  Buffer staged_;  ///< a Staged; a copy to memory that is not pinned would wait for the device
  float* host_gradients_ = nullptr;
  std::size_t final_from_ = 0;  ///< floats from here on are in a piece
  std::size_t pieces_used_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace troupe::kernels
