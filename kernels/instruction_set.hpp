#pragma once

#include <string>
#include <string_view>

#include "kernels/model.hpp"
#include "kernels/workspace.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

// The vendor's library (KernelChoice::library) picks its loops by the CPU's instruction set, and
// those of another set add up in another order. Our own loops give the same bits with every set.

/// Keeps the library of this process from using more than `name`: "sse41", "avx", "avx2" or
/// "avx512_core"; "native" lets it use what the CPU has. To be called before any kernel is made.
///
/// Errors: `failed_precondition` if this process computes with another set already: the library
/// takes one limit, once, for all of a process; `invalid_argument` for another name;
/// `not_supported` on CPUs that have none of these. Nothing changes then.
/// Threads: any.
Status limit_instruction_set(std::string_view name);

/// The set that decides the last bits of a workspace's passes, by oneDNN's name for it; on a GPU
/// its kind and its libraries' versions. Empty if none does, as all layers are computed by our own
/// loops. Errors: those of Workspace's passes.
/// Threads: any.
Result<std::string> instruction_set(const Model& model, const WorkspaceOptions& options);

}  // namespace troupe::kernels
