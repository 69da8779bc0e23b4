#include "kernels/cuda/internal/elementwise_bodies.hpp"
#include "kernels/cuda/internal/launch.cuh"

TROUPE_ELEMENTWISE_BODIES(TROUPE_CUDA_ELEMENTS)
