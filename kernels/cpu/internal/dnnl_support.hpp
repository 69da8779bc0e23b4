#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu/internal/backend.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels::cpu {

using dnnl::memory;

/// Sets the calling thread's OpenMP thread count for a scope. oneDNN decides by it, when a
/// primitive is made and when it runs.
class OpenMpThreads {
public:
  explicit OpenMpThreads(int threads) noexcept;
  ~OpenMpThreads();
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

private:
  int before_;
};

/// Runs `body` with `threads` and turns what oneDNN throws into an error that starts with `what`.
Status guarded(std::string_view what, int threads, const std::function<void()>& body);

/// oneDNN's description of how an activation lies; an interleaved one is taken as plain.
memory::desc describe_memory(const Activation& activation);
/// The other way round: plain if the description is.
Activation describe_activation(const Shape& shape, const memory::desc& description);

memory::dims dims_of(const Shape& shape);
memory::desc plain_desc(const memory::dims& dims);
/// Of a convolution, which is the (first) layer; with groups [groups, out / groups, in / groups,
/// kernel, kernel].
memory::dims convolution_weight_dims(const KernelRequest& request);

/// Attributes that every primitive is made with. Scratch memory is ours: the library's own belongs
/// to the thread that made the primitive, but a workspace may move between threads.
dnnl::primitive_attr attributes();

/// Whether the library computes it with its reference loops, which are a thousand times slower than
/// the others.
template <class Description>
bool is_reference(const Description& made) {
  return std::string_view(made.impl_info_str()).starts_with("ref");
}

/// The CPU as oneDNN sees it, with a stream of work on it, and a kernel's share of the scratch.
struct Engine {
  explicit Engine(SharedScratch& shared) : scratch(shared) {}
  float* floats_at(std::size_t offset) const noexcept {
    return reinterpret_cast<float*>(scratch.at(offset));
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  ScratchPlaces scratch;
};

/// A primitive with its arguments bound.
class Bound {
public:
  /// None: `run` does nothing.
  Bound() = default;
  template <class Description>
  Bound(const dnnl::primitive& primitive, const Description& description, Engine& engine)
      : primitive_(primitive),
        scratchpad_(engine.scratch.add(description.scratchpad_desc().get_size())) {
    bind(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc(), engine);
  }

  /// An argument with memory of its own.
  void bind(int argument, const memory& bound) { arguments_[argument] = bound; }
  /// An argument whose memory `set` names before each run.
  void bind(int argument, const memory::desc& description, Engine& engine) {
    arguments_[argument] = memory(description, engine.engine, nullptr);
  }
  /// oneDNN has no const; inputs are not written.
  void set(int argument, const float* data) {
    arguments_.at(argument).set_data_handle(const_cast<float*>(data));
  }
  void run(Engine& engine) {
    if (!primitive_) return;
    set(DNNL_ARG_SCRATCHPAD, engine.floats_at(scratchpad_));
    primitive_.execute(engine.stream, arguments_);
  }
  explicit operator bool() const { return static_cast<bool>(primitive_); }

private:
  dnnl::primitive primitive_;
  std::size_t scratchpad_ = 0;  ///< in the scratch
  std::unordered_map<int, memory> arguments_;
};

/// Copies between a caller's memory and memory of the layout that a primitive wants; takes the
/// caller's as it is where the layouts agree. The copy lasts for one call of the kernel.
class Staged {
public:
  Staged() = default;
  Staged(const memory::desc& outside, const memory::desc& inside, Engine& engine);

  /// The data in the inside's layout: `outside` itself or our copy of it.
  const float* load(const float* outside, Engine& engine);
  /// Where a primitive is to write for `outside`; `store` then brings it there.
  float* target(float* outside, Engine& engine);
  void store(float* outside, Engine& engine);

private:
  Bound load_, store_;
  std::size_t copy_ = 0;  ///< in the scratch
};

}  // namespace troupe::kernels::cpu
