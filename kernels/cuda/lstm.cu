#include "kernels/cuda/internal/launch.cuh"
#include "kernels/cuda/internal/lstm_bodies.hpp"

TROUPE_LSTM_BODIES(TROUPE_CUDA_ELEMENTS)
