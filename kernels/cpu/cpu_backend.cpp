#include "kernels/cpu/internal/cpu_backend.hpp"

#include <cstring>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/internal/caching_allocator.hpp"

namespace troupe::kernels::cpu {

namespace {

class Heap final : public MemorySource {
public:
  void* take(std::size_t bytes) noexcept override {
    return ::operator new (bytes, std::align_val_t{Buffer::kAlignment}, std::nothrow);
  }
  void give_back(void* block, std::size_t) noexcept override {
    ::operator delete (block, std::align_val_t{Buffer::kAlignment});
  }
  void look(MemoryStatistics&) const noexcept override {}
};

class HostEvent final : public Event {
public:
  Status synchronize() override { return {}; }
};

/// Does everything at once.
class HostStream final : public Stream {
public:
  Status copy(void* to, const void* from, std::size_t bytes) override {
    if (to != from && bytes != 0) std::memcpy(to, from, bytes);
    return {};
  }
  Status zero(void* at, std::size_t bytes) override {
    if (bytes != 0) std::memset(at, 0, bytes);
    return {};
  }
  Status record(Event&) override { return {}; }
  Status wait(const Event&) override { return {}; }
  Status synchronize() override { return {}; }
};

class CpuBackend final : public Backend {
public:
  const DeviceName& name() const noexcept override { return name_; }
  bool is_host() const noexcept override { return true; }

  std::string library_variant() const override { return cpu::library_instruction_set(); }
  Status check_precision(DType precision) const override { return cpu::check_precision(precision); }

  Result<std::unique_ptr<Stream>> make_stream() override {
    return std::unique_ptr<Stream>(std::make_unique<HostStream>());
  }
  Result<std::unique_ptr<Event>> make_event() override {
    return std::unique_ptr<Event>(std::make_unique<HostEvent>());
  }

  Result<Buffer> allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  Result<Buffer> allocate_staging(std::size_t bytes) override { return Buffer::allocate(bytes); }
  MemoryStatistics memory() const override { return memory_->statistics(); }
  void trim() override { memory_->trim(); }

  MadeKernel make_kernel(Operation operation, DType dtype, const KernelRequest& request) override {
    const KernelMaker maker = find_kernel(operation, dtype);
    return maker == nullptr ? MadeKernel(nullptr) : maker(request);
  }
  bool lie_alike(const Activation& a, const Activation& b) const override {
    return cpu::lie_alike(a, b);
  }
  MadeKernel make_reorder(const Activation& from, const Activation& to, int threads,
                          SharedScratch& scratch) override {
    return cpu::make_reorder(from, to, threads, scratch);
  }

  Status add_into(Stream&, float* a, const float* b, std::size_t n, int threads) override {
    cpu::add_into(a, b, n, threads);
    return {};
  }
  Status compute_loss(Stream&, const LossPass& pass) override {
    *pass.stats = pass.loss.compute_scaled(pass.labels, pass.samples, pass.outputs, pass.gradient,
                                           pass.gradient != nullptr ? *pass.gradient_scale : 1.0f);
    return {};
  }
  Status update(Stream&, const UpdatePass& pass) override {
    update_on_host(pass);
    return {};
  }

private:
  const DeviceName name_ = {};
  // The heap keeps what was freed itself.
  const std::shared_ptr<CachingAllocator> memory_ = CachingAllocator::make(
      "the host", MemoryKind::host, std::make_unique<Heap>(), /*keeps=*/false);
};

}  // namespace

std::shared_ptr<Backend> make_backend() {
  return std::make_shared<CpuBackend>();
}

}  // namespace troupe::kernels::cpu
