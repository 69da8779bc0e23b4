#include "kernels/simulated/internal/simulated_backend.hpp"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/internal/backend.hpp"
#include "kernels/internal/caching_allocator.hpp"
#include "kernels/simulated/internal/memory.hpp"
#include "kernels/simulated/internal/scheduler.hpp"

namespace troupe::kernels::simulated {

namespace {

/// What streams and buffers of a device keep alive.
struct Machine {
  Machine(std::uint32_t seed, std::unique_ptr<Memory> the_memory)
      : memory(std::move(the_memory)), scheduler(seed) {}
  const std::unique_ptr<Memory> memory;
  Scheduler scheduler;
};

class Source final : public MemorySource {
public:
  explicit Source(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}
  void* take(std::size_t bytes) noexcept override { return machine_->memory->take(bytes); }
  void give_back(void* block, std::size_t bytes) noexcept override {
    machine_->memory->give_back(static_cast<std::byte*>(block), bytes);
  }
  void look(MemoryStatistics& statistics) const noexcept override {
    machine_->memory->look(statistics);
  }

private:
  const std::shared_ptr<Machine> machine_;
};

class SimulatedEvent final : public Event {
public:
  explicit SimulatedEvent(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}
  Status synchronize() override { return machine_->scheduler.run_until(mark); }
  Scheduler::Mark mark = {};

private:
  const std::shared_ptr<Machine> machine_;
};

struct SimulatedRecording final : Recording {
  explicit SimulatedRecording(std::vector<Scheduler::Work> the_work) : work(std::move(the_work)) {}
  std::vector<Scheduler::Work> work;
};

class SimulatedStream final : public Stream {
public:
  explicit SimulatedStream(std::shared_ptr<Machine> machine)
      : machine_(std::move(machine)), queue_(machine_->scheduler.add_queue()) {}
  ~SimulatedStream() override { machine_->scheduler.remove_queue(queue_); }

  Status copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return {};
    const Memory& memory = *machine_->memory;
    if (recorded_ && !(memory.holds(to) && memory.holds(from)))
      return not_recorded("a copy of the host's memory");
    if (!memory.holds(to)) std::memset(to, 0xff, bytes);
    enqueue([to = memory.at(static_cast<std::byte*>(to)),
             from = memory.at(static_cast<const std::byte*>(from)), bytes] {
      std::memmove(to, from, bytes);
      return Status();
    });
    return {};
  }
  Status zero(void* at, std::size_t bytes) override {
    if (bytes == 0) return {};
    enqueue([at = memory().at(static_cast<std::byte*>(at)), bytes] {
      std::memset(at, 0, bytes);
      return Status();
    });
    return {};
  }
  Status record(Event& event) override {
    if (recorded_) return not_recorded("an event");
    static_cast<SimulatedEvent&>(event).mark = machine_->scheduler.mark(queue_);
    return {};
  }
  Status wait(const Event& event) override {
    if (recorded_) return not_recorded("a wait");
    machine_->scheduler.enqueue_wait(queue_, static_cast<const SimulatedEvent&>(event).mark);
    return {};
  }
  Status synchronize() override {
    if (recorded_) return not_recorded("synchronize()");
    return machine_->scheduler.run_until(machine_->scheduler.mark(queue_));
  }

  bool can_record() const noexcept override { return true; }
  Status begin_recording() override {
    if (recorded_) return not_recorded("begin_recording()");
    recorded_.emplace();
    return {};
  }
  Result<std::unique_ptr<Recording>> end_recording() override {
    if (!recorded_) return Error{Code::failed_precondition, "no recording was begun"};
    auto work = *std::exchange(recorded_, std::nullopt);
    if (work.empty()) return std::unique_ptr<Recording>();
    return std::unique_ptr<Recording>(std::make_unique<SimulatedRecording>(std::move(work)));
  }
  Status enqueue(Recording& recording) override {
    if (recorded_) return not_recorded("a recording");
    for (const auto& work : static_cast<SimulatedRecording&>(recording).work) enqueue(work);
    return {};
  }

  const Memory& memory() const noexcept { return *machine_->memory; }
  void enqueue(Scheduler::Work work) {
    if (recorded_)
      recorded_->push_back(std::move(work));
    else
      machine_->scheduler.enqueue(queue_, std::move(work));
  }

private:
  static Status not_recorded(std::string_view what) {
    return {Code::failed_precondition, fmt::format("{} cannot be recorded", what)};
  }

  const std::shared_ptr<Machine> machine_;
  const Scheduler::Queue queue_;
  std::optional<std::vector<Scheduler::Work>> recorded_;  ///< while it is
};

SimulatedStream& stream_of(Stream* stream) {
  return static_cast<SimulatedStream&>(*stream);
}

template <class T>
std::vector<T*> all_at(const Memory& memory, std::span<T* const> addresses) {
  std::vector<T*> found;
  for (T* address : addresses) found.push_back(memory.at(address));
  return found;
}

/// A kernel of the CPU's, that runs when its stream comes to it.
class LateKernel final : public LayerKernel {
public:
  explicit LateKernel(std::unique_ptr<LayerKernel> kernel) : kernel_(std::move(kernel)) {
    inputs_.assign(kernel_->inputs().begin(), kernel_->inputs().end());
    output_ = kernel_->output();
  }

  Status forward(const ForwardPass& pass) override {
    SimulatedStream& stream = stream_of(pass.stream);
    const Memory& memory = stream.memory();
    stream.enqueue([kernel = kernel_.get(), inputs = all_at(memory, pass.inputs),
                    parameters = memory.at(pass.parameters), output = memory.at(pass.output),
                    key = memory.at(pass.key), sums = memory.at(pass.sums_over_ranks)] {
      return kernel->forward({.inputs = inputs,
                              .parameters = parameters,
                              .output = output,
                              .key = key,
                              .sums_over_ranks = sums});
    });
    return {};
  }

  std::size_t sums_over_ranks() const noexcept override { return kernel_->sums_over_ranks(); }
  Status check_sums(std::span<const double> sums) const override {
    return kernel_->check_sums(sums);
  }
  Status forward_sums(const ForwardPass& pass, double* sums) override {
    SimulatedStream& stream = stream_of(pass.stream);
    const Memory& memory = stream.memory();
    stream.enqueue([kernel = kernel_.get(), inputs = all_at(memory, pass.inputs),
                    parameters = memory.at(pass.parameters), sums = memory.at(sums)] {
      return kernel->forward_sums({.inputs = inputs, .parameters = parameters, .output = nullptr},
                                  sums);
    });
    return {};
  }
  Status backward_sums(const BackwardPass& pass, double* sums) override {
    SimulatedStream& stream = stream_of(pass.stream);
    const Memory& memory = stream.memory();
    stream.enqueue([kernel = kernel_.get(), inputs = all_at(memory, pass.inputs),
                    gradient = memory.at(pass.output_gradient),
                    parameters = memory.at(pass.parameters), gradients = memory.at(pass.gradients),
                    sums = memory.at(sums)] {
      return kernel->backward_sums({.inputs = inputs,
                                    .output = nullptr,
                                    .output_gradient = gradient,
                                    .parameters = parameters,
                                    .gradients = gradients,
                                    .input_gradients = {}},
                                   sums);
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    SimulatedStream& stream = stream_of(pass.stream);
    const Memory& memory = stream.memory();
    stream.enqueue([kernel = kernel_.get(), inputs = all_at(memory, pass.inputs),
                    output = memory.at(pass.output), gradient = memory.at(pass.output_gradient),
                    parameters = memory.at(pass.parameters), gradients = memory.at(pass.gradients),
                    input_gradients = all_at(memory, pass.input_gradients),
                    sums = memory.at(pass.sums_over_ranks)] {
      return kernel->backward({.inputs = inputs,
                               .output = output,
                               .output_gradient = gradient,
                               .parameters = parameters,
                               .gradients = gradients,
                               .input_gradients = input_gradients,
                               .sums_over_ranks = sums});
    });
    return {};
  }

  Status add_statistics(const StatisticsPass& pass) const override {
    SimulatedStream& stream = stream_of(pass.stream);
    stream.enqueue([kernel = kernel_.get(), gradients = stream.memory().at(pass.gradients)] {
      return kernel->add_statistics({gradients});
    });
    return {};
  }

  KernelTraits traits() const noexcept override { return kernel_->traits(); }
  bool uses_library() const noexcept override { return kernel_->uses_library(); }

private:
  const std::unique_ptr<LayerKernel> kernel_;
};

MadeKernel late(MadeKernel made) {
  if (!made.ok() || *made == nullptr) return made;
  return MadeKernel(std::make_unique<LateKernel>(std::move(made).value()));
}

class SimulatedBackend final : public Backend {
public:
  SimulatedBackend(const Options& options, std::shared_ptr<Machine> machine)
      : name_{Device::simulated, options.seed},
        machine_(std::move(machine)),
        memory_(CachingAllocator::make(to_string(name_), MemoryKind::simulated,
                                       std::make_unique<Source>(machine_), /*keeps=*/true)) {}

  const DeviceName& name() const noexcept override { return name_; }
  bool is_host() const noexcept override { return false; }

  std::string library_variant() const override { return cpu::library_instruction_set(); }
  Status check_precision(DType precision) const override { return cpu::check_precision(precision); }

  Result<std::unique_ptr<Stream>> make_stream() override {
    return std::unique_ptr<Stream>(std::make_unique<SimulatedStream>(machine_));
  }
  Result<std::unique_ptr<Event>> make_event() override {
    return std::unique_ptr<Event>(std::make_unique<SimulatedEvent>(machine_));
  }

  Result<Buffer> allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  Result<Buffer> allocate_staging(std::size_t bytes) override { return Buffer::allocate(bytes); }
  // The CPU's kernels take it as it is.
  Result<Buffer> allocate_scratch(std::size_t bytes) override { return Buffer::allocate(bytes); }
  MemoryStatistics memory() const override { return memory_->statistics(); }
  void trim() override { memory_->trim(); }

  MadeKernel make_kernel(Operation operation, DType dtype, const KernelRequest& request) override {
    const KernelMaker maker = cpu::find_kernel(operation, dtype);
    return maker == nullptr ? MadeKernel(nullptr) : late(maker(request));
  }
  bool lie_alike(const Activation& a, const Activation& b) const override {
    return cpu::lie_alike(a, b);
  }
  MadeKernel make_reorder(const Activation& from, const Activation& to, int threads,
                          SharedScratch& scratch) override {
    return late(cpu::make_reorder(from, to, threads, scratch));
  }

  Status add_into(Stream& stream, float* a, const float* b, std::size_t n, int threads) override {
    const Memory& memory = *machine_->memory;
    stream_of(&stream).enqueue([a = memory.at(a), b = memory.at(b), n, threads] {
      cpu::add_into(a, b, n, threads);
      return Status();
    });
    return {};
  }

  Status compute_loss(Stream& stream, const LossPass& pass) override {
    const Memory& memory = *machine_->memory;
    stream_of(&stream).enqueue(
        [loss = &pass.loss, labels = memory.at(pass.labels), samples = pass.samples,
         outputs = memory.at(pass.outputs), gradient = memory.at(pass.gradient),
         scale = memory.at(pass.gradient_scale), stats = memory.at(pass.stats)] {
          *stats = loss->compute_scaled(labels, samples, outputs, gradient,
                                        gradient != nullptr ? *scale : 1.0f);
          return Status();
        });
    return {};
  }

  Status update(Stream& stream, const UpdatePass& pass) override {
    const Memory& memory = *machine_->memory;
    std::vector<GradientRun> gradient;
    for (const GradientRun& run : pass.gradient)
      gradient.push_back({run.begin, {memory.at(run.values.data()), run.values.size()}});
    stream_of(&stream).enqueue([optimizer = &pass.optimizer, factors = pass.factors,
                                gradient = std::move(gradient), scale = pass.statistic_scale,
                                parameters = memory.at(pass.parameters),
                                state = all_at(memory, pass.state)] {
      update_on_host({*optimizer, factors, gradient, scale, parameters, state});
      return Status();
    });
    return {};
  }

private:
  const DeviceName name_;
  const std::shared_ptr<Machine> machine_;
  const std::shared_ptr<CachingAllocator> memory_;
};

}  // namespace

Result<std::shared_ptr<Backend>> make_backend(const Options& options) {
  TROUPE_ASSIGN(auto memory, Memory::make(options.memory));
  auto machine = std::make_shared<Machine>(options.seed, std::move(memory));
  return std::shared_ptr<Backend>(std::make_shared<SimulatedBackend>(options, std::move(machine)));
}

}  // namespace troupe::kernels::simulated
