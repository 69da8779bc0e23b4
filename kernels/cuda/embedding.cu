#include "kernels/cuda/internal/embedding_bodies.hpp"
#include "kernels/cuda/internal/launch.cuh"

TROUPE_EMBEDDING_BODIES(TROUPE_CUDA_ELEMENTS)
