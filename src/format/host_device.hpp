// host_device.hpp - GLYD_HD marks a function that host compilers and nvcc both build, so that device logic runs on the
// CPU under sanitizers.
#pragma once

#if defined(__CUDACC__)
#define GLYD_HD __host__ __device__ __forceinline__
#else
#define GLYD_HD inline
#endif
