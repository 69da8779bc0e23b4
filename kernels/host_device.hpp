#pragma once

/// Marks what a CUDA kernel may call too, where CUDA's compiler reads it.
#ifdef __CUDACC__
#define TROUPE_HOST_DEVICE __host__ __device__
#else
#define TROUPE_HOST_DEVICE
#endif
