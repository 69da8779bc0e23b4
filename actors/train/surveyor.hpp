#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <caf/event_based_actor.hpp>

#include "actors/train/node_context.hpp"

namespace troupe::train {

/// A job's new head to a surveyor: which actors of `job` are on your node? Answered with Surveyed.
struct Survey {
  std::uint64_t job = 0;
};
struct Surveyed {
  std::vector<Enrolled> actors;
};

template <class Inspector>
auto inspect(Inspector& f, Survey& x) {
  return f(x.job);
}
template <class Inspector>
auto inspect(Inspector& f, Surveyed& x) {
  return f(x.actors);
}

/// Spawned on a node by a new head, to find what runs there; ends after its answer.
caf::behavior surveyor(caf::event_based_actor* self, std::shared_ptr<NodeContext> context);

}  // namespace troupe::train
