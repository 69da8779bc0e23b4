#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "kernels/cuda/internal/cuda_status.hpp"
#include "kernels/cuda/internal/engine_file.hpp"
#include "kernels/internal/caching_allocator.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels::cuda {

/// As cuda_status.hpp's. cuDNN: `not_supported` where it says so, `resource_exhausted` for memory,
/// else `unavailable`.
Status check(cudnnStatus_t result, std::string_view what);
Status check(cublasStatus_t result, std::string_view what);

struct ContextOptions {
  std::optional<EngineFile> engines = {};
  bool graphs = true;  ///< whether passes are recorded as CUDA graphs
};

/// A device that was opened, with the libraries' handles on it: what kernels are made with.
///
/// Ownership: the backend's; kernels borrow it.
/// Threads:   any. cuBLASLt's handle may be used by all at once; cuDNN's by one at a time.
class Context {
public:
  /// Errors: `unavailable`.
  static Result<std::unique_ptr<Context>> open(int ordinal, ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int ordinal() const noexcept { return ordinal_; }
  /// The card: "NVIDIA H100 80GB HBM3 (9.0)".
  const std::string& model() const noexcept { return model_; }
  /// The first number of its compute capability: 8 of Ampere, 9 of Hopper, 10 of Blackwell.
  int compute_capability() const noexcept { return compute_capability_; }
  CachingAllocator& memory() const noexcept { return *memory_; }
  CachingAllocator& staging() const noexcept { return *staging_; }
  /// `bytes` of the device, for a kernel's own.
  Result<Buffer> allocate(std::size_t bytes) const { return memory_->allocate(bytes); }

  /// The file of engines, or null; within with_cudnn() only.
  EngineFile* engines() noexcept { return engines_ ? &*engines_ : nullptr; }
  /// What tells it from others, for what the last bits depend on; empty without one.
  const std::string& engines_fingerprint() const noexcept { return engines_fingerprint_; }

  bool graphs() const noexcept { return graphs_; }

  cublasLtHandle_t blas() const noexcept { return blas_.get(); }

  /// Calls use(handle) with cuDNN's, which nobody else uses meanwhile. It is made at the first
  /// call: that takes long, and many models have no convolution.
  template <class Use>
  Status with_cudnn(const Use& use) {
    MutexLock lock(mutex_);
    TROUPE_TRY(make_cudnn());
    return use(cudnn_.get());
  }

private:
  explicit Context(int ordinal);
  Status make_cudnn() TROUPE_REQUIRES(mutex_);

  struct DestroyBlas {
    void operator()(cublasLtHandle_t handle) const noexcept { cublasLtDestroy(handle); }
  };
  struct DestroyCudnn {
    void operator()(cudnnHandle_t handle) const noexcept { cudnnDestroy(handle); }
  };

  const int ordinal_;
  std::string model_;
  std::optional<EngineFile> engines_;
  std::string engines_fingerprint_;
  int compute_capability_ = 0;
  bool graphs_ = true;
  const std::shared_ptr<CachingAllocator> memory_;
  const std::shared_ptr<CachingAllocator> staging_;
  std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, DestroyBlas> blas_;
  Mutex mutex_;
  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, DestroyCudnn> cudnn_
      TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::kernels::cuda
