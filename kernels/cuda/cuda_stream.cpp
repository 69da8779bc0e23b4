#include "kernels/cuda/internal/cuda_stream.hpp"

#include "kernels/cuda/internal/device_scope.hpp"

namespace troupe::kernels::cuda {

Result<std::unique_ptr<Stream>> CudaStream::make(Context& context) {
  const DeviceScope scope(context.ordinal());
  TROUPE_TRY(scope.status());
  cudaStream_t handle = nullptr;
  TROUPE_TRY(check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "stream"));
  return std::unique_ptr<Stream>(new CudaStream(context, handle));
}

CudaStream::~CudaStream() {
  const DeviceScope scope(context_.ordinal());
  // Its scratch memory goes to others.
  static_cast<void>(cudaStreamSynchronize(handle_));
  static_cast<void>(cudaStreamDestroy(handle_));
}

Status CudaStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0 || to == from) return {};
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_), "copy");
}

Status CudaStream::zero(void* at, std::size_t bytes) {
  if (bytes == 0) return {};
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  return check(cudaMemsetAsync(at, 0, bytes, handle_), "zero");
}

Status CudaStream::record(Event& event) {
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  return check(cudaEventRecord(static_cast<CudaEvent&>(event).handle(), handle_), "record");
}

Status CudaStream::wait(const Event& event) {
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  // Of one that was never recorded CUDA waits for nothing.
  return check(cudaStreamWaitEvent(handle_, static_cast<const CudaEvent&>(event).handle(), 0),
               "wait");
}

Status CudaStream::synchronize() {
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  return check(cudaStreamSynchronize(handle_), "synchronize");
}

Result<std::byte*> CudaStream::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) {
    TROUPE_TRY(synchronize());
    TROUPE_ASSIGN(scratch_, context_.allocate(bytes));
  }
  return scratch_.data();
}

Result<std::unique_ptr<Event>> CudaEvent::make(Context& context) {
  const DeviceScope scope(context.ordinal());
  TROUPE_TRY(scope.status());
  cudaEvent_t handle = nullptr;
  TROUPE_TRY(check(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming), "event"));
  return std::unique_ptr<Event>(new CudaEvent(context, handle));
}

CudaEvent::~CudaEvent() {
  const DeviceScope scope(context_.ordinal());
  static_cast<void>(cudaEventDestroy(handle_));
}

Status CudaEvent::synchronize() {
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  // Of one that was never recorded CUDA returns at once.
  return check(cudaEventSynchronize(handle_), "synchronize");
}

}  // namespace troupe::kernels::cuda
