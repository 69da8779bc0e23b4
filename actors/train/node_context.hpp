#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>

#include "actors/config/job_config.hpp"
#include "actors/config/learning_rate.hpp"
#include "actors/data/dataset.hpp"
#include "actors/data/open_datasets.hpp"
#include "actors/data/sampler.hpp"
#include "actors/train/replica.hpp"
#include "actors/train/setup.hpp"
#include "kernels/compute_device.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer_pool.hpp"

namespace troupe::train {

/// What the actors of one job on one node share: its configuration, data and replica.
///
/// Ownership: shared by those actors; gone with the last of them.
/// Threads:   any for what is const; replica() as Replica says.
class JobOnNode {
public:
  static Result<std::shared_ptr<JobOnNode>> make(const Setup& setup);

  const JobConfig& config() const { return config_; }
  const JobLength& length() const { return length_; }
  std::uint64_t total_steps() const { return length_.epochs * length_.steps_per_epoch; }
  const Dataset& train_data() const { return *data_.train; }
  const Dataset& test_data() const { return *data_.test; }
  /// Equal on all nodes that read the same data.
  std::string data_hash() const { return data_.content_hash(); }
  /// What a person should know of samples that were replaced here since the last call, if anything.
  /// Threads: any.
  std::string take_replaced();
  const Sampler& sampler() const { return *sampler_; }
  Replica& replica() { return *replica_; }
  const Replica& replica() const { return *replica_; }
  BufferPool& pool() { return pool_; }
  /// The host's, for what a rank's passes give: pinned, where a device copies to it, as a copy to
  /// other memory waits for what is computed.
  Result<Buffer> acquire_gradients(std::size_t bytes) {
    return device_.kind() == kernels::Device::cpu ? pool_.acquire(bytes)
                                                  : device_.allocate_staging(bytes);
  }
  /// What the ranks of this node share to compute on.
  const kernels::ComputeDevice& device() const { return device_; }
  /// As kernels::instruction_set says.
  const std::string& instruction_set() const { return instruction_set_; }

  /// What the ranks of this node took to compute. Threads: any.
  void add_compute(std::chrono::nanoseconds time) {
    compute_nanos_ += static_cast<std::uint64_t>(time.count());
    ++computed_;
  }
  /// The mean of one rank and step since the last call, in seconds; 0 if there was none.
  double take_pace() {
    const auto count = computed_.exchange(0);
    const auto nanos = static_cast<double>(compute_nanos_.exchange(0));
    return count == 0 ? 0 : nanos / static_cast<double>(count) / 1e9;
  }

private:
  JobOnNode(JobConfig config, Datasets data) : config_(std::move(config)), data_(std::move(data)) {}

  const JobConfig config_;
  JobLength length_;
  const Datasets data_;
  std::unique_ptr<const Sampler> sampler_;
  std::unique_ptr<Replica> replica_;
  BufferPool pool_;
  std::atomic<std::uint64_t> compute_nanos_ = 0, computed_ = 0;
  std::atomic<std::uint64_t> replaced_told_ = 0;
  kernels::ComputeDevice device_;
  std::string instruction_set_;
};

enum class Role : std::uint8_t { loader, trainer, reducer };

/// An actor of a job on this node.
struct Enrolled {
  std::uint64_t generation = 0;
  Role role = Role::loader;
  caf::actor actor;
};

template <class Inspector>
auto inspect(Inspector& f, Enrolled& x) {
  return f(x.generation, x.role, x.actor);
}

/// What the training actors of one node share: the jobs that are on it, and who works on them.
///
/// Threads: any.
class NodeContext {
public:
  /// The job of `setup`, made by the first actor that asks. Errors: those of its configuration,
  /// data, weights and device; the other actors of a generation get what the first one got.
  Result<std::shared_ptr<JobOnNode>> job(const Setup& setup);

  void enroll(const Setup& setup, Role role, const caf::actor& actor);
  /// Those that live.
  std::vector<Enrolled> enrolled(std::uint64_t job);
  /// No actor of any job lives here.
  bool idle();

private:
  struct Entry {
    std::uint64_t job = 0;
    std::uint64_t generation = 0;
    Role role = Role::loader;
    caf::actor_addr actor;  ///< keeps nobody alive
  };

  /// Why a job could not be made for a generation.
  struct Failure {
    std::uint64_t job = 0;
    std::uint64_t generation = 0;
    Error reason;
  };

  /// Those of jobs that have no actor here.
  void forget_failures() TROUPE_REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<Failure> failures_ TROUPE_GUARDED_BY(mutex_);  ///< of jobs that are here
  std::map<std::uint64_t, std::weak_ptr<JobOnNode>> jobs_ TROUPE_GUARDED_BY(mutex_);
  std::vector<Entry> entries_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::train
