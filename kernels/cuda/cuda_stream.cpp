#include "kernels/cuda/internal/cuda_stream.hpp"

#include <cstddef>
#include <memory>
#include <type_traits>

#include <fmt/format.h>

#include "kernels/cuda/internal/cuda_recording.hpp"
#include "kernels/cuda/internal/device_scope.hpp"

namespace troupe::kernels::cuda {

namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const noexcept { static_cast<void>(cudaGraphDestroy(graph)); }
};

}  // namespace

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

Status CudaStream::begin_recording() {
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  // Other threads go on as they like.
  TROUPE_TRY(check(cudaStreamBeginCapture(handle_, cudaStreamCaptureModeThreadLocal),
                   "recording of a pass"));
  recording_ = true;
  return {};
}

Result<std::unique_ptr<Recording>> CudaStream::end_recording() {
  if (!recording_) return Error{Code::failed_precondition, "no recording was begun"};
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  recording_ = false;
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(handle_, &captured);
  if (ended != cudaSuccess) {
    // Handled: it must not come up again at a later call.
    static_cast<void>(cudaGetLastError());
    return check(ended, "recording of a pass").error();
  }
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph> graph(captured);
  std::size_t nodes = 0;
  TROUPE_TRY(check(cudaGraphGetNodes(graph.get(), nullptr, &nodes), "recording of a pass"));
  if (nodes == 0) return std::unique_ptr<Recording>();
  return CudaRecording::make(graph.get(), scratch_);
}

Status CudaStream::enqueue(Recording& recording) {
  const DeviceScope scope(context_.ordinal());
  TROUPE_TRY(scope.status());
  return static_cast<CudaRecording&>(recording).launch(handle_);
}

Result<std::byte*> CudaStream::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) {
    if (recording_)
      return Error{Code::failed_precondition,
                   fmt::format("{} bytes of scratch memory cannot be allocated while a pass is "
                               "recorded",
                               bytes)};
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
