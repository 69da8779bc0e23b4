#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/checkpoint/safetensors.hpp"
#include "actors/config/job_config.hpp"
#include "actors/config/learning_rate.hpp"
#include "actors/train/events.hpp"
#include "actors/train/loss_scale.hpp"
#include "kernels/compute_device.hpp"
#include "kernels/gradient.hpp"
#include "kernels/model.hpp"
#include "kernels/training_state.hpp"
#include "kernels/weights.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::train {

/// Metadata key of a checkpoint: JobConfig::results_hash() of the job that made it.
inline constexpr std::string_view kResultsHashKey = "troupe.results_hash";
/// JobOnNode::data_hash() of the job that made it.
inline constexpr std::string_view kDataHashKey = "troupe.data_hash";
/// And results_text().
inline constexpr std::string_view kResultsKey = "troupe.results";

/// Metadata key of a checkpoint: how many of its steps were skipped. Not there: none.
inline constexpr std::string_view kSkipsKey = "troupe.skipped_steps";

/// Metadata key of a checkpoint: the LossScale, if there is one.
inline constexpr std::string_view kLossScaleKey = "troupe.loss_scale";

/// A run of the flat gradient that is reduced as one.
struct Bucket {
  std::uint64_t begin = 0;  ///< f32 elements in the flat layout
  std::uint64_t end = 0;
};

/// Cuts the flat layout into runs of about `bucket_bytes` along parameter boundaries, the last
/// layer first: the order in which backward finishes them.
std::vector<Bucket> make_buckets(const kernels::Model& model, std::uint64_t bucket_bytes);

/// The state of a job that a node holds: weights, optimizer state, and how many steps they have
/// seen. All ranks of the node compute on the same weights, in the memory of the device.
///
/// Ownership: shared by the actors of one job on one node; only the reducer changes it.
/// Threads:   the reducer's, while no trainer computes; others may read weights during a step.
/// Failure:   as kernels::TrainingState, and with its errors: where a device has failed, the
///            replica of this node is lost.
class Replica {
public:
  /// Weights by the job's seed or of its model.weights, or those of the checkpoint `resume_from`.
  /// Errors: those of load_weights and of the checkpoint reader; `invalid_argument` if the
  /// checkpoint is of another job; those of the device, `resource_exhausted`.
  static Result<std::unique_ptr<Replica>> make(const JobConfig& config, const kernels::Model& model,
                                               kernels::ComputeDevice device,
                                               const std::string& resume_from, JobLength length);

  const kernels::Model& model() const { return state_.model(); }
  /// What passes on the replica's device compute with.
  kernels::Weights weights() const { return state_.weights(); }
  std::uint64_t steps_done() const { return steps_done_; }
  /// Of the file of weights that it started from; empty if it did not from one.
  const std::string& weights_hash() const { return weights_hash_; }
  /// Of the data that the checkpoint's job read; empty if it began with none, or that does not say.
  const std::string& resumed_data_hash() const { return resumed_data_hash_; }

  /// Takes a step: one optimizer update by the sum of all ranks' gradients, clipped as the job
  /// says, and the statistics moved. `gradient_sum` is all of the flat layout, in order; any split
  /// into runs gives the same bits. After an error it has not been taken.
  Status take_step(std::span<const kernels::GradientRun> gradient_sum);
  /// Instead of that: the step counts, and nothing else changes.
  void skip() {
    ++steps_done_;
    ++skips_;
    loss_scale_.add_overflow();
  }
  /// That the step in flight takes its gradients with.
  const LossScale& loss_scale() const { return loss_scale_; }
  /// Steps that were skipped since the job began: they are no updates of the optimizer.
  std::uint64_t skips() const { return skips_; }

  /// How the tests of the epochs went that this state has gone past. State like the weights: it
  /// must not be lost with a node.
  const std::vector<EpochFinished>& epochs() const { return epochs_; }
  void add_epoch(const EpochFinished& epoch) { epochs_.push_back(epoch); }

  /// 32 hex digits over weights, optimizer state and steps.
  Result<std::string> hash() const;

  /// A copy of weights and optimizer state that stays as it is, for writing in the background.
  struct Snapshot {
    std::uint64_t steps_done = 0;
    std::uint64_t skips = 0;
    LossScale loss_scale;
    std::vector<TensorView> tensors;      ///< weights first, then optimizer state
    std::size_t weights = 0;              ///< how many of them are weights
    Buffer parameters;                    ///< what the views of weights point into
    std::vector<Buffer> optimizer_state;  ///< and the others, in the optimizer's order
  };
  Result<Snapshot> snapshot() const;

  /// Takes the state of another node's replica: what its snapshot holds. Errors: `shape_mismatch`
  /// if it is of another model or optimizer; nothing changed then.
  Status install(std::uint64_t steps_done, std::uint64_t skips, const LossScale& loss_scale,
                 const Buffer& parameters, const std::vector<Buffer>& optimizer_state,
                 std::vector<EpochFinished> epochs);

private:
  Replica(const JobConfig& config, kernels::TrainingState state, JobLength length);

  const OptimizerConfig optimizer_config_;
  kernels::TrainingState state_;
  const JobLength length_;
  const float gradient_scale_;   ///< 1 / labels of a step
  const float statistic_scale_;  ///< 1 / samples of a step
  std::uint64_t steps_done_ = 0;
  std::uint64_t skips_ = 0;
  LossScale loss_scale_;
  std::vector<EpochFinished> epochs_;
  std::string weights_hash_, resumed_data_hash_;
};

}  // namespace troupe::train
