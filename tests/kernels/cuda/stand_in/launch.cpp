// The bodies of our own kernels in plain loops. Rows go backwards and elements in a stride, so that
// one which relied on their order would be found out.
#include "kernels/cuda/internal/launch.hpp"

#include "kernels/cuda/internal/batch_norm_bodies.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/embedding_bodies.hpp"
#include "kernels/cuda/internal/group.hpp"
#include "kernels/cuda/internal/lstm_bodies.hpp"
#include "kernels/cuda/internal/norm_bodies.hpp"
#include "kernels/cuda/internal/optimizer_bodies.hpp"
#include "kernels/cuda/internal/pooling_bodies.hpp"
#include "kernels/cuda/internal/rounding_bodies.hpp"
#include "kernels/cuda/internal/softmax_bodies.hpp"
#include "kernels/cuda/internal/vector_bodies.hpp"
#include "tests/kernels/cuda/stand_in/stream.hpp"

namespace troupe::kernels::cuda {

template <class Body>
Status for_each(cudaStream_t stream, std::size_t n, const Body& body) {
  if (stream == nullptr) return {Code::unavailable, "no stream"};
  stand_in::enqueue(stream, [n, body] {
    constexpr std::size_t kStep = 7;
    for (std::size_t first = 0; first < kStep; ++first)
      for (std::size_t i = first; i < n; i += kStep) body(i);
    return true;
  });
  return {};
}

template <class Body>
Status for_each_row(cudaStream_t stream, std::size_t rows, const Body& body) {
  if (stream == nullptr) return {Code::unavailable, "no stream"};
  stand_in::enqueue(stream, [rows, body] {
    double lanes[Group::kLanes];
    Group group(lanes);
    for (std::size_t row = rows; row-- > 0;) body(group, row);
    return true;
  });
  return {};
}

#define TROUPE_ELEMENTS(...) \
  template Status for_each(cudaStream_t, std::size_t, const __VA_ARGS__&);
#define TROUPE_ROWS(...) \
  template Status for_each_row(cudaStream_t, std::size_t, const __VA_ARGS__&);
TROUPE_BATCH_NORM_ELEMENT_BODIES(TROUPE_ELEMENTS)
TROUPE_BATCH_NORM_ROW_BODIES(TROUPE_ROWS)
TROUPE_ELEMENTWISE_BODIES(TROUPE_ELEMENTS)
TROUPE_EMBEDDING_BODIES(TROUPE_ELEMENTS)
TROUPE_LSTM_BODIES(TROUPE_ELEMENTS)
TROUPE_NORM_ELEMENT_BODIES(TROUPE_ELEMENTS)
TROUPE_NORM_ROW_BODIES(TROUPE_ROWS)
TROUPE_OPTIMIZER_BODIES(TROUPE_ELEMENTS)
TROUPE_POOLING_BODIES(TROUPE_ELEMENTS)
TROUPE_ROUNDING_BODIES(TROUPE_ELEMENTS)
TROUPE_SOFTMAX_ELEMENT_BODIES(TROUPE_ELEMENTS)
TROUPE_SOFTMAX_ROW_BODIES(TROUPE_ROWS)
TROUPE_VECTOR_BODIES(TROUPE_ELEMENTS)

}  // namespace troupe::kernels::cuda
