#include "kernels/state.hpp"

namespace troupe::kernels {

std::vector<StateEntry> state_of(const Parameters& parameters) {
  return state_of(parameters, "");
}

std::vector<StateEntry> state_of(const Parameters& parameters, std::string_view prefix) {
  std::vector<StateEntry> entries;
  const auto infos = parameters.model().parameters();
  entries.reserve(infos.size());
  for (std::size_t i = 0; i < infos.size(); ++i)
    entries.push_back({std::string(prefix) + infos[i].name, parameters.tensor(i)});
  return entries;
}

}  // namespace troupe::kernels
