#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/base/status.hpp"

namespace troupe::kernels {
class Backend;
}

/// An accelerator that is made of the CPU's kernels: for finding, without one, what would go wrong
/// on one.
///
/// Its memory is at addresses that the host cannot read or write (it ends with SIGSEGV), and begins
/// as NaN. Its streams run what was enqueued late, each in order and all of them interleaved by the
/// seed: mostly only when somebody waits. Where a copy will write on the host stands NaN until it
/// does. What is computed has the CPU's bits, so any difference is a missing synchronisation.
namespace troupe::kernels::simulated {

struct Options {
  std::uint32_t seed = 0;                     ///< 0: nothing runs before somebody waits
  std::size_t memory = std::size_t{1} << 30;  ///< bytes
};

/// Errors: `resource_exhausted` if the addresses cannot be had.
Result<std::shared_ptr<Backend>> make_backend(const Options& options);

}  // namespace troupe::kernels::simulated
