#include "kernels/cuda/internal/launch.cuh"
#include "kernels/cuda/internal/vector_bodies.hpp"

TROUPE_VECTOR_BODIES(TROUPE_CUDA_ELEMENTS)
