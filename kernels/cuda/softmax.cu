#include "kernels/cuda/internal/launch.cuh"
#include "kernels/cuda/internal/softmax_bodies.hpp"

TROUPE_SOFTMAX_ELEMENT_BODIES(TROUPE_CUDA_ELEMENTS)
TROUPE_SOFTMAX_ROW_BODIES(TROUPE_CUDA_ROWS)
