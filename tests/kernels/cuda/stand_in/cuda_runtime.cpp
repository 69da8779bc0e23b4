#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

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

enum class Kind : std::uint8_t { device, pinned };
struct Block {
  std::size_t bytes;
  Kind kind;
};

/// All that is allocated, by where it begins.
struct Blocks {
  std::mutex mutex;
  std::map<std::uintptr_t, Block> by_begin;
};
Blocks& blocks() {
  static Blocks all;
  return all;
}

void* take(std::size_t bytes, Kind kind) {
  void* const block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (block == nullptr) return nullptr;
  std::memset(block, 0xff, bytes);  // NaN
  const std::lock_guard lock(blocks().mutex);
  blocks().by_begin[reinterpret_cast<std::uintptr_t>(block)] = {bytes, kind};
  return block;
}

void give_back(void* block) {
  const std::lock_guard lock(blocks().mutex);
  blocks().by_begin.erase(reinterpret_cast<std::uintptr_t>(block));
  std::free(block);
}

/// Nothing for memory that is only the host's.
std::optional<Kind> kind_of(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(blocks().mutex);
  auto found = blocks().by_begin.upper_bound(at);
  if (found == blocks().by_begin.begin()) return {};
  --found;
  return at < found->first + found->second.bytes ? std::optional(found->second.kind) : std::nullopt;
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
  *block = bytes <= behaviour().memory ? take(bytes, Kind::device) : nullptr;
  return *block == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* block) {
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return refused;
  give_back(block);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned) {
  *block = take(bytes, Kind::pinned);
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
  if (kind_of(from) == Kind::device && !kind_of(to)) ++record().waiting_copies;
  enqueue(stream, [=] {
    std::memmove(to, from, bytes);
    return true;
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  enqueue(stream, [=] {
    std::memset(at, value, bytes);
    return true;
  });
  return cudaSuccess;
}
}
