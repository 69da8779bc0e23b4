# The CUDA backend: TROUPE_CUDA is OFF, ON (an error if something is missing) or AUTO (a message).
# Sets TROUPE_WITH_CUDA. Nothing here needs a GPU.
set(TROUPE_WITH_CUDA OFF)
if(TROUPE_CUDA)
  # It is looked for in CUDA_PATH, PATH and /usr/local/cuda.
  find_package(CUDAToolkit 12.0 QUIET)
  if(CUDAToolkit_FOUND)
    find_package(CUDNN 9.0 QUIET)
  endif()

  set(_troupe_missing "")
  if(NOT CUDAToolkit_FOUND)
    set(_troupe_missing "the CUDA Toolkit 12 or newer (set CUDAToolkit_ROOT if it is there)")
  elseif(NOT CUDAToolkit_NVCC_EXECUTABLE)
    set(_troupe_missing "nvcc (beside ${CUDAToolkit_BIN_DIR})")
  elseif(NOT TARGET CUDA::cublasLt)
    set(_troupe_missing "cuBLASLt")
  elseif(NOT CUDNN_FOUND)
    set(_troupe_missing "cuDNN 9 (set CUDNN_ROOT if it is there)")
  endif()

  if(NOT _troupe_missing)
    set(TROUPE_WITH_CUDA ON)
  elseif(TROUPE_CUDA STREQUAL "AUTO")
    message(STATUS "No CUDA backend: ${_troupe_missing} was not found")
  else()
    message(
      FATAL_ERROR
        "TROUPE_CUDA is ${TROUPE_CUDA}, but ${_troupe_missing} was not found. "
        "`scripts/deps gpu` installs what is needed; -DTROUPE_CUDA=OFF builds without.")
  endif()
endif()

if(TROUPE_WITH_CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
  endif()
  # Machine code for A100 and H100, and PTX that the driver compiles for what comes after.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  # Named by the libraries that need it, so that programs do without the language.
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 12 has C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
  if(TROUPE_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${TROUPE_CCACHE}")
  endif()
  message(STATUS "CUDA backend: CUDA ${CUDAToolkit_VERSION}, cuDNN ${CUDNN_VERSION}, "
                 "architectures ${CMAKE_CUDA_ARCHITECTURES}")
endif()
