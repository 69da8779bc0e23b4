#include "kernels/instruction_set.hpp"

#include "kernels/cpu/internal/backend.hpp"
#include "kernels/internal/network.hpp"

namespace troupe::kernels {

Status limit_instruction_set(std::string_view name) {
  return cpu::limit_instruction_set(name);
}

Result<std::string> instruction_set(const Model& model, const WorkspaceOptions& options) {
  TROUPE_TRY(options.validate());
  // Which kernels are chosen does not depend on the batch.
  TROUPE_ASSIGN(const Network network,
                Network::create(model, 1,
                                {options.device, options.kernels, options.threads, Mode::inference,
                                 false, nullptr, options.precision}));
  return network.uses_library() ? options.device.backend().library_variant() : std::string();
}

}  // namespace troupe::kernels
