#pragma once

#include <memory>
#include <string>

#include "actors/config/job_config.hpp"
#include "actors/train/setup.hpp"
#include "runtime/graph/graph.hpp"

namespace troupe::train {

/// A training job as a graph:
///
///     loader --batches--> trainer --gradients--> reducer --partials--> reducers of all nodes
///     (per rank)          (per rank)             (per node)
///
/// Every actor is spawned with `setup`, its own index filled in. Any number of ranks and nodes.
std::unique_ptr<graph::Graph> job_graph(const JobConfig& config, const Setup& setup = {});

}  // namespace troupe::train
