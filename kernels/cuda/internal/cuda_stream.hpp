#pragma once

#include <memory>

#include <cuda_runtime_api.h>

#include "kernels/cuda/internal/context.hpp"
#include "kernels/internal/backend.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels::cuda {

/// A CUDA stream that waits for no other, nor they for it.
///
/// Failure: of work that failed later: CUDA gives that error at every call from then on.
class CudaStream final : public Stream {
public:
  static Result<std::unique_ptr<Stream>> make(Context& context);
  ~CudaStream() override;

  Status copy(void* to, const void* from, std::size_t bytes) override;
  Status zero(void* at, std::size_t bytes) override;
  Status record(Event& event) override;
  Status wait(const Event& event) override;
  Status synchronize() override;

  bool can_record() const noexcept override { return context_.graphs(); }
  /// CUDA does not take calls for memory, or waits, of a thread whose stream records.
  Status begin_recording() override;
  Result<std::unique_ptr<Recording>> end_recording() override;
  Status enqueue(Recording& recording) override;

  cudaStream_t handle() const noexcept { return handle_; }
  int ordinal() const noexcept { return context_.ordinal(); }
  /// `bytes` that the stream's work uses one after the other, as the loss does; what is in it lasts
  /// until the next call. Error: `failed_precondition` if there are not so many while it records.
  Result<std::byte*> scratch(std::size_t bytes);

private:
  CudaStream(Context& context, cudaStream_t handle) : context_(context), handle_(handle) {}
  Context& context_;
  cudaStream_t handle_;
  bool recording_ = false;
  Buffer scratch_;
};

class CudaEvent final : public Event {
public:
  static Result<std::unique_ptr<Event>> make(Context& context);
  ~CudaEvent() override;
  Status synchronize() override;
  cudaEvent_t handle() const noexcept { return handle_; }

private:
  CudaEvent(Context& context, cudaEvent_t handle) : context_(context), handle_(handle) {}
  Context& context_;
  cudaEvent_t handle_;
};

/// The streams of this backend are of this kind.
inline CudaStream& cuda_stream(Stream& stream) noexcept {
  return static_cast<CudaStream&>(stream);
}

}  // namespace troupe::kernels::cuda
