#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/compute_device.hpp"
#include "kernels/internal/layer_kernel.hpp"
#include "kernels/internal/loss.hpp"
#include "kernels/internal/update_pass.hpp"
#include "kernels/operation.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

/// A moment in a stream, which may be waited for.
///
/// Threads: one at a time, any; while it is not recorded, any number of streams may wait for it.
class Event {
public:
  virtual ~Event() = default;
  /// Returns when what came before it in its stream is done; at once if it was never recorded.
  /// Errors: as Stream::synchronize.
  virtual Status synchronize() = 0;
};

/// Work that a stream kept, to be enqueued again and again as one. What its kernels use (their
/// descriptors, their memory) outlives it.
class Recording {
public:
  virtual ~Recording() = default;
};

/// Work of a device that is done in order: what is enqueued runs after what was enqueued before,
/// and later than the call. What it reads and writes, on the host too, is left alone until the
/// stream, or an event after it, was synchronized with. On the CPU all is done when a call returns.
///
/// Threads: one at a time, any.
/// Failure: of work that fails later, the first error comes from the next synchronize(), here or of
///          an event, and from then on.
class Stream {
public:
  virtual ~Stream() = default;
  /// Copies between any two of the device's and the host's memory.
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual Status zero(void* at, std::size_t bytes) = 0;
  /// Puts `event` here; it is nowhere else from then on.
  virtual Status record(Event& event) = 0;
  /// What comes later waits for where `event` is now, in a stream of the same device.
  virtual Status wait(const Event& event) = 0;
  /// Returns when all is done.
  virtual Status synchronize() = 0;

  /// Whether it can keep work. The three below are for those that can.
  virtual bool can_record() const noexcept { return false; }
  /// From now on what is enqueued is kept, and not done. That may be kernels, and copies and zeros
  /// within the device's memory; all else, events and the host's memory, is an error until
  /// end_recording().
  virtual Status begin_recording();
  /// What was kept; null if nothing was. With an error it is lost. Either way the stream goes on as
  /// before begin_recording().
  virtual Result<std::unique_ptr<Recording>> end_recording();
  /// What a stream of this device kept; it outlives its being done.
  virtual Status enqueue(Recording& recording);
};

/// One call of a loss. Pointers are the device's.
struct LossPass {
  const LossFunction& loss;  ///< outlives what is enqueued
  const std::byte* labels;   ///< as LossFunction::labels has them
  std::int64_t samples;
  const float* outputs;
  float* gradient;              ///< or null
  const float* gradient_scale;  ///< that the gradient is multiplied by
  LossStats* stats;             ///< where the result goes
};

/// What computes: a kind of device's kernels, memory and streams. One for each open device.
///
/// Threads: any.
class Backend {
public:
  virtual ~Backend() = default;

  virtual const DeviceName& name() const noexcept = 0;
  /// Whether its memory is the host's, and its work done when a call returns.
  virtual bool is_host() const noexcept = 0;

  /// What the last bits of the kernels that use a library depend on: an instruction set, or a card
  /// and a version.
  virtual std::string library_variant() const = 0;

  /// Whether it has kernels whose products are of that type. Error: `not_supported` with what to
  /// take instead.
  virtual Status check_precision(DType precision) const = 0;

  virtual Result<std::unique_ptr<Stream>> make_stream() = 0;
  virtual Result<std::unique_ptr<Event>> make_event() = 0;

  // As ComputeDevice says. A buffer's last work is synchronized with before it is let go.
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  virtual Result<Buffer> allocate_staging(std::size_t bytes) = 0;
  /// For what kernels need during a call.
  virtual Result<Buffer> allocate_scratch(std::size_t bytes) { return allocate(bytes); }
  virtual MemoryStatistics memory() const = 0;
  virtual void trim() = 0;

  /// A kernel, or null where there is none for these layers.
  virtual MadeKernel make_kernel(Operation operation, DType dtype,
                                 const KernelRequest& request) = 0;
  /// Whether two blocked activations of one shape lie in the same way.
  virtual bool lie_alike(const Activation& a, const Activation& b) const = 0;
  /// A kernel that copies `from` into the layout of `to`, and gradients back.
  virtual MadeKernel make_reorder(const Activation& from, const Activation& to, int threads,
                                  SharedScratch& scratch) = 0;

  /// a[i] += b[i].
  virtual Status add_into(Stream& stream, float* a, const float* b, std::size_t n, int threads) = 0;
  virtual Status compute_loss(Stream& stream, const LossPass& pass) = 0;
  /// What Optimizer::update() and then update_statistics() do, with their bits.
  virtual Status update(Stream& stream, const UpdatePass& pass) = 0;
};

/// Whether two activations of one shape lie in the same way.
bool lie_alike(const Backend& backend, const Activation& a, const Activation& b);

}  // namespace troupe::kernels
