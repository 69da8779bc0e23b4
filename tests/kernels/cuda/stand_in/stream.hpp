#pragma once

#include <functional>

#include <driver_types.h>

namespace troupe::stand_in {

/// What a stream is given: false if it could not be done.
using Work = std::function<bool()>;

/// Does `work` at once, or, while the stream is captured, keeps it and gives true.
bool enqueue(cudaStream_t stream, Work work);

/// As CUDA's for calls that the thread of a capture may not make: the capture is lost.
cudaError_t refuse_while_capturing();

}  // namespace troupe::stand_in
