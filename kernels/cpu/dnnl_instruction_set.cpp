#include <array>
#include <optional>

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu/internal/backend.hpp"
#include "runtime/base/mutex.hpp"

namespace troupe::kernels::cpu {

namespace {

struct InstructionSet {
  std::string_view name;
  dnnl::cpu_isa isa;
};

constexpr std::array<InstructionSet, 8> kSets = {
    {{"sse41", dnnl::cpu_isa::sse41},
     {"avx", dnnl::cpu_isa::avx},
     {"avx2", dnnl::cpu_isa::avx2},
     {"avx512_core", dnnl::cpu_isa::avx512_core},
     {"avx2_vnni", dnnl::cpu_isa::avx2_vnni},
     {"avx512_core_vnni", dnnl::cpu_isa::avx512_core_vnni},
     {"avx512_core_bf16", dnnl::cpu_isa::avx512_core_bf16},
     {"avx512_core_amx", dnnl::cpu_isa::avx512_core_amx}}};
/// Those that can be a limit: what comes after adds nothing for f32.
constexpr std::size_t kLimits = 4;

/// Whether the CPU has set `index` of the limits, or anything beyond them.
bool cpu_has(std::size_t index) {
#if defined(__x86_64__)
  switch (index) {
    case 0:
      return __builtin_cpu_supports("sse4.1");
    case 1:
      return __builtin_cpu_supports("avx");
    case 2:
      return __builtin_cpu_supports("avx2");
    case 3:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    default:
      return __builtin_cpu_supports("avx512vnni");
  }
#else
  return index > kLimits;
#endif
}

/// What this process told oneDNN, which keeps one limit for all of a process, takes it once, and
/// does not give it back: so it is kept beside it.
struct ProcessLimit {
  Mutex mutex;
  std::optional<std::size_t> index TROUPE_GUARDED_BY(mutex);
};

ProcessLimit& process_limit() {
  static ProcessLimit limit;
  return limit;
}

Error fixed_already(std::string_view wanted) {
  return {Code::failed_precondition,
          fmt::format("oneDNN computes with {} in this process since an earlier job, and cannot "
                      "change to {} any more; start the process anew",
                      library_instruction_set(), wanted)};
}

}  // namespace

std::string library_instruction_set() {
  const auto isa = dnnl::get_effective_cpu_isa();
  for (const auto& set : kSets)
    if (set.isa == isa) return std::string(set.name);
  return fmt::format("instruction set {:#x}", static_cast<unsigned>(isa));
}

Status check_precision(DType precision) {
  if (precision == DType::f32) return {};
  if (precision != DType::bf16)
    return {Code::not_supported,
            fmt::format("the CPU has no kernels of precision {}; take bf16 or f32",
                        to_string(precision))};
  const std::string set = library_instruction_set();
  if (set.starts_with("avx512")) return {};
  return {Code::not_supported,
          fmt::format("precision bf16 needs AVX-512, but oneDNN uses {} here; take f32, a newer "
                      "CPU, or a limit (job.max_cpu_isa) that allows it",
                      set)};
}

Status limit_instruction_set(std::string_view name) {
  auto& limit = process_limit();
  MutexLock lock(limit.mutex);
  if (name == "native") {
    // A limit to what the CPU does not exceed is none.
    if (limit.index && cpu_has(*limit.index + 1)) return fixed_already(name);
    return {};
  }
  std::size_t wanted = 0;
  while (wanted < kLimits && kSets[wanted].name != name) ++wanted;
  if (wanted == kLimits)
    return Error{Code::invalid_argument,
                 fmt::format("instruction set \"{}\" is none of native, sse41, avx, avx2 and "
                             "avx512_core",
                             name)};
  if (!cpu_has(0))
    return Error{Code::not_supported,
                 fmt::format("this CPU has no instruction set {}; take \"native\"", name)};
  if (limit.index == wanted) return {};
  if (!limit.index && dnnl::set_max_cpu_isa(kSets[wanted].isa) == dnnl::status::success) {
    limit.index = wanted;
    return {};
  }
  // Fixed by that limit or by a kernel: which may come to the same.
  const bool unlimited = !limit.index || !cpu_has(*limit.index + 1);
  if (library_instruction_set() == name || (unlimited && !cpu_has(wanted + 1))) return {};
  return fixed_already(name);
}

}  // namespace troupe::kernels::cpu
