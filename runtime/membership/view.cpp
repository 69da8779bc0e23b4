#include "runtime/membership/view.hpp"

#include <algorithm>

namespace troupe {

const Member* View::find(NodeId node) const {
  const auto it = std::find_if(members.begin(), members.end(),
                               [node](const Member& member) { return member.node == node; });
  return it == members.end() ? nullptr : &*it;
}

}  // namespace troupe
