// Streams, events, and graphs that are captured from streams. Everything is done at once, so events
// hold nothing; each has an address of its own.
#include "tests/kernels/cuda/stand_in/stream.hpp"

#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/kernels/cuda/stand_in/stand_in.hpp"

namespace troupe::stand_in {

namespace {

struct Stream {
  bool captured = false;
  bool lost = false;  ///< what is captured
  std::vector<Work> work;
};
struct Graph {
  std::vector<Work> work;
};

// As with cudaStreamCaptureModeThreadLocal.
thread_local Stream* captured_by_thread = nullptr;

Stream* of(cudaStream_t stream) {
  return reinterpret_cast<Stream*>(stream);
}
Graph* of(cudaGraph_t graph) {
  return reinterpret_cast<Graph*>(graph);
}
Graph* of(cudaGraphExec_t graph) {
  return reinterpret_cast<Graph*>(graph);
}

}  // namespace

bool enqueue(cudaStream_t stream, Work work) {
  if (!of(stream)->captured) return work();
  of(stream)->work.push_back(std::move(work));
  return true;
}

cudaError_t refuse_while_capturing() {
  if (captured_by_thread == nullptr) return cudaSuccess;
  captured_by_thread->lost = true;
  return cudaErrorStreamCaptureUnsupported;
}

}  // namespace troupe::stand_in

using namespace troupe::stand_in;  // NOLINT

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
  *stream = reinterpret_cast<cudaStream_t>(new troupe::stand_in::Stream());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (captured_by_thread == of(stream)) captured_by_thread = nullptr;
  delete of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return stream == nullptr ? cudaErrorInvalidResourceHandle : refuse_while_capturing();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return stream == nullptr || event == nullptr || flags != 0 ? cudaErrorInvalidResourceHandle
                                                             : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (flags != cudaEventDisableTiming && flags != cudaEventDefault) return cudaErrorInvalidValue;
  *event = reinterpret_cast<cudaEvent_t>(new int(0));
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (begin == nullptr || end == nullptr) return cudaErrorInvalidResourceHandle;
  const auto engine = static_cast<std::size_t>(record().last_engine);
  const auto& all = behaviour().engine_milliseconds;
  *milliseconds = engine < all.size() ? all[engine] : 1.0f;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<int*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return stream == nullptr || event == nullptr ? cudaErrorInvalidResourceHandle : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event == nullptr ? cudaErrorInvalidResourceHandle : refuse_while_capturing();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr || of(stream)->captured || captured_by_thread != nullptr ||
      mode != cudaStreamCaptureModeThreadLocal)
    return cudaErrorIllegalState;
  if (!behaviour().captures) return cudaErrorStreamCaptureUnsupported;
  *of(stream) = {.captured = true, .lost = false, .work = {}};
  captured_by_thread = of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (stream == nullptr || captured_by_thread != of(stream)) return cudaErrorIllegalState;
  captured_by_thread = nullptr;
  of(stream)->captured = false;
  std::vector<Work> work = std::exchange(of(stream)->work, {});
  if (of(stream)->lost) return cudaErrorStreamCaptureInvalidated;
  *graph = reinterpret_cast<cudaGraph_t>(new Graph{std::move(work)});
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (graph == nullptr || nodes != nullptr) return cudaErrorInvalidValue;
  *count = of(graph)->work.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                          unsigned long long flags) {
  if (graph == nullptr || flags != 0) return cudaErrorInvalidValue;
  *made = reinterpret_cast<cudaGraphExec_t>(new Graph(*of(graph)));
  ++record().graphs_made;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete of(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete of(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (graph == nullptr || stream == nullptr || of(stream)->captured) return cudaErrorInvalidValue;
  ++record().graph_launches;
  for (const Work& work : of(graph)->work)
    if (!work()) return cudaErrorLaunchFailure;
  return cudaSuccess;
}
}
