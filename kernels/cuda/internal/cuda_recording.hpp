#pragma once

#include <memory>
#include <type_traits>

#include <cuda_runtime_api.h>

#include "kernels/internal/backend.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels::cuda {

/// What a stream kept, as a CUDA graph that was made ready to run.
///
/// Ownership: keeps the stream's scratch memory, which its kernels write, from others.
/// Threads:   one at a time, any; on its device.
class CudaRecording final : public Recording {
public:
  /// Of a graph with at least one node, which is the caller's. Errors: as check().
  static Result<std::unique_ptr<Recording>> make(cudaGraph_t graph, Buffer scratch);

  Status launch(cudaStream_t stream);

private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const noexcept {
      static_cast<void>(cudaGraphExecDestroy(graph));
    }
  };
  using Executable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;

  CudaRecording(Executable executable, Buffer scratch);

  Buffer scratch_;
  Executable executable_;
};

}  // namespace troupe::kernels::cuda
