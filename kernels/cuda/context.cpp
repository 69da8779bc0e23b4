#include "kernels/cuda/internal/context.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "kernels/cuda/internal/device_scope.hpp"

namespace troupe::kernels::cuda {

namespace {

class DeviceMemory final : public MemorySource {
public:
  explicit DeviceMemory(int ordinal) : ordinal_(ordinal) {}
  void* take(std::size_t bytes) noexcept override {
    const DeviceScope scope(ordinal_);
    void* block = nullptr;
    if (scope.status().ok() && cudaMalloc(&block, bytes) == cudaSuccess) return block;
    forget_error();
    return nullptr;
  }
  void give_back(void* block, std::size_t) noexcept override {
    const DeviceScope scope(ordinal_);
    static_cast<void>(cudaFree(block));
  }
  void look(MemoryStatistics& statistics) const noexcept override {
    const DeviceScope scope(ordinal_);
    if (!scope.status().ok() ||
        cudaMemGetInfo(&statistics.free, &statistics.total) != cudaSuccess) {
      statistics.free = statistics.total = 0;
      forget_error();
    }
  }

private:
  /// One that was handled must not come up in a program that asks for CUDA's last error.
  static void forget_error() noexcept { static_cast<void>(cudaGetLastError()); }
  int ordinal_;
};

class PinnedMemory final : public MemorySource {
public:
  explicit PinnedMemory(int ordinal) : ordinal_(ordinal) {}
  void* take(std::size_t bytes) noexcept override {
    const DeviceScope scope(ordinal_);
    void* block = nullptr;
    if (scope.status().ok() && cudaHostAlloc(&block, bytes, cudaHostAllocPortable) == cudaSuccess)
      return block;
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  void give_back(void* block, std::size_t) noexcept override {
    const DeviceScope scope(ordinal_);
    static_cast<void>(cudaFreeHost(block));
  }
  void look(MemoryStatistics&) const noexcept override {}

private:
  int ordinal_;
};

}  // namespace

Context::Context(int ordinal)
    : ordinal_(ordinal),
      memory_(CachingAllocator::make(fmt::format("CUDA device {}", ordinal), MemoryKind::cuda,
                                     std::make_unique<DeviceMemory>(ordinal), /*keeps=*/true)),
      staging_(CachingAllocator::make("the host's pinned memory", MemoryKind::pinned,
                                      std::make_unique<PinnedMemory>(ordinal), /*keeps=*/true)) {}

Context::~Context() {
  const DeviceScope scope(ordinal_);
  blas_.reset();
  MutexLock lock(mutex_);
  cudnn_.reset();
}

Result<std::unique_ptr<Context>> Context::open(int ordinal, ContextOptions options) {
  const DeviceScope scope(ordinal);
  TROUPE_TRY(scope.status());
  std::unique_ptr<Context> context(new Context(ordinal));
  cudaDeviceProp properties;
  TROUPE_TRY(check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties"));
  context->model_ = fmt::format("{} ({}.{})", properties.name, properties.major, properties.minor);
  context->compute_capability_ = properties.major;
  if (options.engines) context->engines_fingerprint_ = options.engines->fingerprint();
  context->engines_ = std::move(options.engines);
  context->graphs_ = options.graphs;
  cublasLtHandle_t blas = nullptr;
  TROUPE_TRY(check(cublasLtCreate(&blas), "cublasLtCreate"));
  context->blas_.reset(blas);
  return context;
}

Status Context::make_cudnn() {
  if (cudnn_ != nullptr) return {};
  cudnnHandle_t handle = nullptr;
  TROUPE_TRY(check(cudnnCreate(&handle), "cudnnCreate"));
  cudnn_.reset(handle);
  return {};
}

}  // namespace troupe::kernels::cuda
