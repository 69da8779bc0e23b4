#include "kernels/cuda/internal/graph_tuning.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::kernels::cuda {

namespace {

// cuDNN's order is that of what it expects to be fast: the fastest is among the first.
constexpr std::size_t kMostMeasured = 12;
constexpr int kRuns = 5;

struct Destroy {
  void operator()(cudaStream_t it) const noexcept { static_cast<void>(cudaStreamDestroy(it)); }
  void operator()(cudaEvent_t it) const noexcept { static_cast<void>(cudaEventDestroy(it)); }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

Result<Owned<cudaEvent_t>> make_event() {
  cudaEvent_t made = nullptr;
  TROUPE_TRY(check(cudaEventCreateWithFlags(&made, cudaEventDefault), "event"));
  return Owned<cudaEvent_t>(made);
}

/// Memory for a graph's tensors, zeroed, and a stream to run it in.
class Bench {
public:
  static Result<Bench> make(Context& context, const GraphTuning& tuning) {
    Bench bench(context);
    cudaStream_t stream = nullptr;
    TROUPE_TRY(check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream"));
    bench.stream_.reset(stream);
    TROUPE_ASSIGN(bench.begin_, make_event());
    TROUPE_ASSIGN(bench.end_, make_event());
    for (const GraphTuning::Tensor& tensor : tuning.tensors) {
      TROUPE_ASSIGN(Buffer buffer, context.allocate(std::max<std::size_t>(tensor.bytes, 1)));
      TROUPE_TRY(check(cudaMemsetAsync(buffer.data(), 0, buffer.size(), stream), "zero"));
      bench.ids_.push_back(tensor.id);
      bench.addresses_.push_back(buffer.data());
      bench.buffers_.push_back(std::move(buffer));
    }
    return bench;
  }

  /// Milliseconds of a run: the least of a few.
  Result<float> measure(cudnnHandle_t handle, const EnginePlan& plan) {
    TROUPE_ASSIGN(Buffer workspace,
                  context_->allocate(std::max<std::size_t>(plan.workspace_bytes, 1)));
    void* const at = workspace.data();
    TROUPE_ASSIGN(const Descriptor pack,
                  DescriptorBuilder(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
                      .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids_)
                      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                           std::ssize(addresses_), addresses_.data())
                      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &at)
                      .finish());
    TROUPE_TRY(check(cudnnSetStream(handle, stream_.get()), "cudnnSetStream"));
    float least = 0.0f;
    for (int run = -1; run < kRuns; ++run) {  // the first one warms up
      TROUPE_TRY(check(cudaEventRecord(begin_.get(), stream_.get()), "event"));
      TROUPE_TRY(
          check(cudnnBackendExecute(handle, plan.plan.get(), pack.get()), "cudnnBackendExecute"));
      TROUPE_TRY(check(cudaEventRecord(end_.get(), stream_.get()), "event"));
      TROUPE_TRY(check(cudaEventSynchronize(end_.get()), "measuring an engine"));
      float took = 0.0f;
      TROUPE_TRY(check(cudaEventElapsedTime(&took, begin_.get(), end_.get()), "event"));
      if (run == 0 || (run > 0 && took < least)) least = took;
    }
    return least;
  }

private:
  explicit Bench(Context& context) : context_(&context) {}

  Context* context_;
  std::vector<Buffer> buffers_;
  std::vector<std::int64_t> ids_;
  std::vector<void*> addresses_;
  Owned<cudaEvent_t> begin_, end_;
  Owned<cudaStream_t> stream_;  ///< goes first: it waits for nothing that is measured
};

Result<std::vector<ExactEngine>> all_engines(const Descriptor& graph, DType factors) {
  std::vector<ExactEngine> all;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    auto engines = exact_engines(graph, mode, factors);
    if (is_refusal(engines.status())) continue;
    TROUPE_TRY(engines.status());
    std::ranges::move(*engines, std::back_inserter(all));
  }
  return all;
}

struct Fastest {
  EngineChoice choice;
  EnginePlan plan;
};

Result<std::optional<Fastest>> fastest(Context& context, cudnnHandle_t handle,
                                       std::vector<ExactEngine> engines,
                                       const GraphTuning& tuning) {
  TROUPE_ASSIGN(Bench bench, Bench::make(context, tuning));
  std::optional<Fastest> best;
  float least = 0.0f;
  for (std::size_t i = 0; i < std::min(kMostMeasured, engines.size()); ++i) {
    const EngineChoice choice{static_cast<std::int64_t>(i), engines[i].number};
    auto plan = EnginePlan::make(handle, std::move(engines[i]));
    if (!plan.ok()) continue;
    // One whose workspace does not fit, or that fails, is none.
    const auto took = bench.measure(handle, *plan);
    if (!took.ok() || (best && *took >= least)) continue;
    least = *took;
    best = Fastest{choice, std::move(plan).value()};
  }
  return best;
}

}  // namespace

Result<std::optional<EnginePlan>> tuned_plan(Context& context, cudnnHandle_t handle,
                                             const Descriptor& graph, DType factors,
                                             const GraphTuning& tuning) {
  EngineFile& file = *context.engines();
  const std::string key =
      fmt::format("{}, cuDNN {}, {}", context.model(), cudnnGetVersion(), tuning.name);
  const auto choice = file.find(key);
  if (!choice && !file.measures()) return std::optional<EnginePlan>();
  TROUPE_ASSIGN(auto engines, all_engines(graph, factors));
  if (!choice) {
    TROUPE_ASSIGN(auto best, fastest(context, handle, std::move(engines), tuning));
    if (!best) return std::optional<EnginePlan>();
    TROUPE_TRY(file.add(key, best->choice));
    return std::optional(std::move(best->plan));
  }
  const auto place = static_cast<std::size_t>(choice->position);
  if (place >= engines.size() || engines[place].number != choice->engine)
    return std::optional<EnginePlan>();
  auto plan = EnginePlan::make(handle, std::move(engines[place]));
  if (is_refusal(plan.status())) return std::optional<EnginePlan>();
  TROUPE_TRY(plan.status());
  return std::optional(std::move(plan).value());
}

}  // namespace troupe::kernels::cuda
