#include "kernels/cuda/internal/launch.cuh"
#include "kernels/cuda/internal/norm_bodies.hpp"

TROUPE_NORM_ELEMENT_BODIES(TROUPE_CUDA_ELEMENTS)
TROUPE_NORM_ROW_BODIES(TROUPE_CUDA_ROWS)
