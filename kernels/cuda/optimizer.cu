#include "kernels/cuda/internal/launch.cuh"
#include "kernels/cuda/internal/optimizer_bodies.hpp"

TROUPE_OPTIMIZER_BODIES(TROUPE_CUDA_ELEMENTS)
