#include "kernels/cuda/internal/cuda_backend.hpp"

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_stream.hpp"
#include "kernels/cuda/internal/device_scope.hpp"
#include "kernels/cuda/internal/optimizer.hpp"
#include "kernels/internal/backend.hpp"

namespace troupe::kernels::cuda {

namespace {

class CudaBackend final : public Backend {
public:
  CudaBackend(std::uint32_t ordinal, std::unique_ptr<Context> context)
      : name_{Device::cuda, ordinal}, context_(std::move(context)) {}

  const DeviceName& name() const noexcept override { return name_; }
  bool is_host() const noexcept override { return false; }
  std::string library_variant() const override {
    const std::string& engines = context_->engines_fingerprint();
    return fmt::format("{}, cuDNN {}, cuBLASLt {}{}{}", context_->model(), cudnnGetVersion(),
                       cublasLtGetVersion(), engines.empty() ? "" : ", engines ", engines);
  }

  /// All cards that this is compiled for multiply bf16 and f16.
  Status check_precision(DType) const override { return {}; }

  Result<std::unique_ptr<Stream>> make_stream() override { return CudaStream::make(*context_); }
  Result<std::unique_ptr<Event>> make_event() override { return CudaEvent::make(*context_); }

  Result<Buffer> allocate(std::size_t bytes) override { return context_->allocate(bytes); }
  Result<Buffer> allocate_staging(std::size_t bytes) override {
    return context_->staging().allocate(bytes);
  }
  MemoryStatistics memory() const override { return context_->memory().statistics(); }
  void trim() override {
    context_->memory().trim();
    context_->staging().trim();
  }

  MadeKernel make_kernel(Operation operation, DType dtype, const KernelRequest& request) override {
    const Maker maker = find_kernel(operation, dtype);
    // Those that give the same bits on every machine are the CPU's.
    if (maker == nullptr || request.choice == KernelChoice::portable) return MadeKernel(nullptr);
    const DeviceScope scope(context_->ordinal());
    TROUPE_TRY(scope.status());
    MadeKernel made = maker(*context_, request);
    if (made.ok()) return made;
    return Error{made.code(),
                 fmt::format("{}: {}", describe(request.layers[0].spec), made.error().message)};
  }
  // All activations are plain.
  bool lie_alike(const Activation&, const Activation&) const override { return true; }
  MadeKernel make_reorder(const Activation& from, const Activation&, int, SharedScratch&) override {
    return Error{Code::internal,
                 fmt::format("an activation of {} is not plain on {}, where all are",
                             to_string(from.shape), to_string(name_))};
  }

  Status add_into(Stream& stream, float* a, const float* b, std::size_t n, int) override {
    const DeviceScope scope(context_->ordinal());
    TROUPE_TRY(scope.status());
    return cuda::add_into(cuda_stream(stream), a, b, n);
  }
  Status compute_loss(Stream& stream, const LossPass& pass) override {
    const DeviceScope scope(context_->ordinal());
    TROUPE_TRY(scope.status());
    return cuda::compute_loss(cuda_stream(stream), pass);
  }
  Status update(Stream& stream, const UpdatePass& pass) override {
    const GradientRun& gradient = pass.gradient.front();
    const Optimizer& optimizer = pass.optimizer;
    TROUPE_TRY(cuda::update(cuda_stream(stream), optimizer.options(), optimizer.model(),
                            pass.factors, gradient.values.data(), pass.parameters, pass.state));
    return cuda::update_statistics(cuda_stream(stream), optimizer.model(), gradient.values.data(),
                                   gradient.values.size(), pass.statistic_scale, pass.parameters);
  }

private:
  const DeviceName name_;
  const std::unique_ptr<Context> context_;
};

/// What a variable of the environment says, "0" or "1"; nothing if it is not there.
Result<std::optional<bool>> switch_of_environment(const char* name) {
  const char* const value = std::getenv(name);
  const std::string_view text = value == nullptr ? "" : value;
  if (text == "") return std::optional<bool>();
  if (text == "0" || text == "1") return std::optional(text == "1");
  return Error{Code::invalid_argument, fmt::format("{} is \"{}\", but must be 0 or 1", name, text)};
}

/// TROUPE_CUDA_ENGINES names the file of engines, if there is to be one; TROUPE_CUDA_MEASURE=1 lets
/// what it does not have be measured. TROUPE_CUDA_GRAPHS=0 has all passes enqueued kernel by
/// kernel.
Result<ContextOptions> options_of_environment() {
  ContextOptions options;
  const char* const path = std::getenv("TROUPE_CUDA_ENGINES");
  TROUPE_ASSIGN(const auto measure, switch_of_environment("TROUPE_CUDA_MEASURE"));
  TROUPE_ASSIGN(const auto graphs, switch_of_environment("TROUPE_CUDA_GRAPHS"));
  options.graphs = graphs.value_or(true);
  if (path != nullptr && *path != '\0') {
    TROUPE_ASSIGN(options.engines, EngineFile::open({path, measure.value_or(false)}));
  } else if (measure.value_or(false)) {
    return Error{Code::invalid_argument,
                 "TROUPE_CUDA_MEASURE is 1, but no file is named that keeps what is measured; set "
                 "TROUPE_CUDA_ENGINES"};
  }
  return options;
}

}  // namespace

Result<std::shared_ptr<Backend>> make_backend(std::uint32_t ordinal) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorNoDevice) count = 0;
  if (counted != cudaErrorNoDevice) TROUPE_TRY(check(counted, "looking for CUDA devices"));
  if (ordinal >= static_cast<std::uint32_t>(count))
    return Error{
        Code::not_found,
        fmt::format("there is no {}: this process sees {} CUDA device{}, counted from 0; "
                    "see nvidia-smi, and CUDA_VISIBLE_DEVICES",
                    to_string(DeviceName{Device::cuda, ordinal}), count, count == 1 ? "" : "s")};
  TROUPE_ASSIGN(auto options, options_of_environment());
  TROUPE_ASSIGN(auto context, Context::open(static_cast<int>(ordinal), std::move(options)));
  return std::shared_ptr<Backend>(std::make_shared<CudaBackend>(ordinal, std::move(context)));
}

}  // namespace troupe::kernels::cuda
