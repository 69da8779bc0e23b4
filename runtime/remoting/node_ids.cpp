#include <algorithm>
#include <cstring>

#include <caf/node_id.hpp>

#include "runtime/remoting/remoting.hpp"

namespace troupe::remoting {
namespace {

// CAF's id has 20 bytes for the host and a process number. Ours takes 16 of them; the rest is
// fixed, so that an id that did not come from here is told apart.
constexpr std::uint32_t kProcess = 1;

}  // namespace

caf::node_id to_caf(NodeId id) {
  if (!id.valid()) return {};
  caf::node_id::default_data::host_id_type host{};
  std::memcpy(host.data(), &id.high, sizeof id.high);
  std::memcpy(host.data() + sizeof id.high, &id.low, sizeof id.low);
  return caf::make_node_id(kProcess, host);
}

NodeId from_caf(const caf::node_id& node) {
  if (!node || node->implementation_id() != caf::node_id::default_data::class_id) return {};
  const auto& data = static_cast<const caf::node_id::default_data&>(*node);
  const auto host = data.host_id();
  NodeId id;
  std::memcpy(&id.high, host.data(), sizeof id.high);
  std::memcpy(&id.low, host.data() + sizeof id.high, sizeof id.low);
  const bool ours =
      data.process_id() == kProcess && std::all_of(host.begin() + sizeof(NodeId), host.end(),
                                                   [](std::uint8_t byte) { return byte == 0; });
  return ours ? id : NodeId{};
}

}  // namespace troupe::remoting
