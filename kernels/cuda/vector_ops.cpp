#include "kernels/cuda/internal/vector_ops.hpp"

#include "kernels/cuda/internal/device_scope.hpp"
#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/vector_bodies.hpp"

namespace troupe::kernels::cuda {

namespace {

template <class Body>
Status on_device(CudaStream& stream, std::size_t n, const Body& body) {
  const DeviceScope scope(stream.ordinal());
  TROUPE_TRY(scope.status());
  return for_each(stream.handle(), n, body);
}

}  // namespace

Status add(CudaStream& stream, const float* a, const float* b, float* to, std::size_t n) {
  return on_device(stream, n, Sum{a, b, to});
}

Status to_bf16(CudaStream& stream, const float* from, std::uint16_t* to, std::size_t n) {
  return on_device(stream, n, ToBf16{from, to});
}
Status from_bf16(CudaStream& stream, const std::uint16_t* from, float* to, std::size_t n) {
  return on_device(stream, n, FromBf16{from, to});
}
Status to_f16(CudaStream& stream, const float* from, std::uint16_t* to, std::size_t n) {
  return on_device(stream, n, ToF16{from, to});
}
Status from_f16(CudaStream& stream, const std::uint16_t* from, float* to, std::size_t n) {
  return on_device(stream, n, FromF16{from, to});
}

Status pack(CudaStream& stream, const PackedRun* runs, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    TROUPE_TRY(stream.copy(runs[i].to, runs[i].from, runs[i].floats * sizeof(float)));
  return {};
}

Status normalize_pixels(CudaStream& stream, const PixelRun& pixels, float* to) {
  return on_device(stream, pixels.n,
                   NormalizePixels{pixels.bytes, pixels.tables, pixels.channels, pixels.area, to});
}

}  // namespace troupe::kernels::cuda
