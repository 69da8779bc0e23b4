#include "kernels/cuda/internal/cuda_recording.hpp"

#include <utility>

#include "kernels/cuda/internal/cuda_status.hpp"

namespace troupe::kernels::cuda {

CudaRecording::CudaRecording(Executable executable, Buffer scratch)
    : scratch_(std::move(scratch)), executable_(std::move(executable)) {}

Result<std::unique_ptr<Recording>> CudaRecording::make(cudaGraph_t graph, Buffer scratch) {
  cudaGraphExec_t executable = nullptr;
  TROUPE_TRY(check(cudaGraphInstantiateWithFlags(&executable, graph, 0), "graph of a pass"));
  return std::unique_ptr<Recording>(new CudaRecording(Executable(executable), std::move(scratch)));
}

Status CudaRecording::launch(cudaStream_t stream) {
  return check(cudaGraphLaunch(executable_.get(), stream), "launch of a pass's graph");
}

}  // namespace troupe::kernels::cuda
