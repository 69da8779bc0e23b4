#include "kernels/cuda/internal/launch.cuh"
#include "kernels/cuda/internal/pooling_bodies.hpp"

TROUPE_POOLING_BODIES(TROUPE_CUDA_ELEMENTS)
