#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor.hpp>

namespace troupe::train {

/// What every actor of a training job is spawned with.
struct Setup {
  std::uint64_t job = 0;
  std::uint64_t generation = 1;
  std::string config;       ///< the job as TOML
  std::string resume_from;  ///< checkpoint file, empty for a fresh start
  std::uint32_t index = 0;  ///< loader, trainer: the rank; reducer: index of its node
  std::vector<std::uint32_t> node_of_rank;  ///< index of the node that each rank is placed on
  caf::actor job_actor;
  bool outlives_head = false;  ///< goes on if the head is lost, until another adopts it

  std::uint32_t node_of(std::uint32_t rank) const {
    return rank < node_of_rank.size() ? node_of_rank[rank] : 0;
  }
};

template <class Inspector>
auto inspect(Inspector& f, Setup& x) {
  return f(x.job, x.generation, x.config, x.resume_from, x.index, x.node_of_rank, x.job_actor,
           x.outlives_head);
}

// Ports of the job's graph.
inline constexpr const char* kBatches = "batches";      ///< loader -> trainer
inline constexpr const char* kGradients = "gradients";  ///< trainer -> reducer
inline constexpr const char* kPartials = "partials";    ///< reducer -> reducers

}  // namespace troupe::train
