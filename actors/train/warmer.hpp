#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <caf/event_based_actor.hpp>

#include "actors/train/node_context.hpp"
#include "actors/train/setup.hpp"

namespace troupe::train {

/// Job -> a warmer: are you ready? Answered with Warm.
struct WarmUp {};
struct Warm {
  std::uint16_t code = 0;  ///< Code; why this node cannot work for the job
  std::string message;
  // As in Ready.
  std::string data_hash;
  std::string weights_hash;
  std::string program;
  std::string instruction_set;
};

template <class Inspector>
auto inspect(Inspector& f, WarmUp&) {
  return f();
}
template <class Inspector>
auto inspect(Inspector& f, Warm& x) {
  return f(x.code, x.message, x.data_hash, x.weights_hash, x.program, x.instruction_set);
}

/// Reads a job's data and makes its model on a node that has just joined, while the others go on,
/// and keeps both until the job ends.
caf::behavior warmer(caf::event_based_actor* self, std::shared_ptr<NodeContext> context,
                     Setup setup);

}  // namespace troupe::train
