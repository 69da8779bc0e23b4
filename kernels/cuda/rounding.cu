#include "kernels/cuda/internal/launch.cuh"
#include "kernels/cuda/internal/rounding_bodies.hpp"

TROUPE_ROUNDING_BODIES(TROUPE_CUDA_ELEMENTS)
