#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "actors/collective/plan.hpp"

namespace troupe::bench {

struct WorkerOptions {
  int rank = 0;
  int ranks = 1;
  std::string directory;  ///< where the workers leave their addresses for each other
  std::vector<std::size_t> sizes;
  int samples = 5;
  bool shared_memory = true;
  int spin_us = -1;  ///< of the transport; if negative its default, none when cores are few
  collective::Tuning tuning;
};

/// One process of our all-reduce; that of rank 0 prints a line for each size. Returns the exit
/// code.
int run_worker(const WorkerOptions& options);

}  // namespace troupe::bench
