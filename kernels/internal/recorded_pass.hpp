#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/internal/backend.hpp"
#include "kernels/internal/network.hpp"
#include "kernels/internal/pass_memory.hpp"
#include "runtime/base/status.hpp"

namespace troupe::kernels {

/// The training passes of one network on a device: the first as kernels one by one, the second as
/// it is recorded, all others as that recording, which saves what the host does for each kernel. It
/// is in pieces, as gradients leave between them.
///
/// A pass that cannot be recorded is done without, and so are all later ones.
///
/// Ownership: borrows the statistics.
/// Threads: one at a time, any.
class RecordedPass {
public:
  /// What a recording holds of memory that may be another's at the next pass.
  struct Addresses {
    const float* parameters = nullptr;
    const float* gradients = nullptr;
    const std::byte* labels = nullptr;
    bool operator==(const Addresses&) const = default;
  };
  /// Enqueues a pass in the stream of `memory`, kernel by kernel.
  using Pass = std::function<Status(const GradientEnqueued& enqueued)>;

  /// With `may_record` false (Network::can_be_recorded()) all passes are done without. Counts in
  /// `statistics`.
  RecordedPass(bool may_record, PassStatistics& statistics)
      : may_record_(may_record), statistics_(&statistics) {}

  /// Enqueues `pass`, with its gradients on their way to the host. After an error something of it
  /// may be under way.
  Status enqueue(PassMemory& memory, const Addresses& addresses, const Pass& pass);

private:
  /// What is enqueued before gradients leave, and whose are final then.
  struct Piece {
    std::unique_ptr<Recording> work;  ///< or null, if there is none
    std::vector<const ParameterInfo*> final;
  };

  static Status enqueue_plainly(PassMemory& memory, const Pass& pass);
  Status record(PassMemory& memory, const Pass& pass);
  Status replay(PassMemory& memory);

  bool may_record_;
  PassStatistics* statistics_;
  bool ran_ = false;
  Addresses addresses_;
  std::vector<Piece> pieces_;
};

}  // namespace troupe::kernels
