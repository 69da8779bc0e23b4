#include "kernels/cuda/internal/batch_norm_bodies.hpp"
#include "kernels/cuda/internal/launch.cuh"

TROUPE_BATCH_NORM_ELEMENT_BODIES(TROUPE_CUDA_ELEMENTS)
TROUPE_BATCH_NORM_ROW_BODIES(TROUPE_CUDA_ROWS)
