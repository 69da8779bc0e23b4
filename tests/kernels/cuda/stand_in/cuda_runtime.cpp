#include <cstdlib>
#include <cstring>

#include <cuda_runtime_api.h>

#include "tests/kernels/cuda/stand_in/stand_in.hpp"
#include "tests/kernels/cuda/stand_in/stream.hpp"

namespace troupe::stand_in {

Record& record() {
  static thread_local Record the_record;
  return the_record;
}

Behaviour& behaviour() {
  static Behaviour the_behaviour;
  return the_behaviour;
}

void reset() {
  record() = {};
  behaviour() = {};
}

namespace {
// As CUDA has it: one for each thread.
thread_local int current_device = 0;

void* take(std::size_t bytes) {
  void* const block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (block != nullptr) std::memset(block, 0xff, bytes);  // NaN
  return block;
}
}  // namespace

}  // namespace troupe::stand_in

using namespace troupe::stand_in;  // NOLINT

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = behaviour().devices;
  return behaviour().device_count_error;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= behaviour().devices) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->major = behaviour().compute_capability;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "as the stand-in was told";
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorInsufficientDriver ? "cudaErrorInsufficientDriver" : "cudaError";
}

cudaError_t cudaMalloc(void** block, size_t bytes) {
  *block = nullptr;
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return refused;
  *block = bytes <= behaviour().memory ? take(bytes) : nullptr;
  return *block == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* block) {
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return refused;
  std::free(block);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned) {
  *block = take(bytes);
  return *block == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void* block) {
  return cudaFree(block);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = behaviour().memory;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind != cudaMemcpyDefault || stream == nullptr) return cudaErrorInvalidValue;
  return enqueue(stream,
                 [=] {
                   std::memmove(to, from, bytes);
                   return true;
                 })
             ? cudaSuccess
             : cudaErrorLaunchFailure;
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  return enqueue(stream,
                 [=] {
                   std::memset(at, value, bytes);
                   return true;
                 })
             ? cudaSuccess
             : cudaErrorLaunchFailure;
}
}
