// warpgroup_shared.cuh - the tensor core with both operands in shared memory, tiles of many tokens.
#pragma once

#include <cstdint>

namespace glyd::cuda::arch {

// d (+)= a * x^T, both by their descriptors; a: 64 x 16, x: kTokens x 16, d: 64 x kTokens fp32, for every 8 tokens 4
// registers as mma.m16n8k16 has them. Asynchronous, as multiply_async.
template <uint32_t kTokens>
__device__ void multiply_shared(float* d, uint64_t a, uint64_t x, uint32_t add);

#define GLYD_SUMS_8(i)                                                                                        \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define GLYD_SUMS_64(i)                                                                              \
  GLYD_SUMS_8(i), GLYD_SUMS_8(i + 8), GLYD_SUMS_8(i + 16), GLYD_SUMS_8(i + 24), GLYD_SUMS_8(i + 32), \
      GLYD_SUMS_8(i + 40), GLYD_SUMS_8(i + 48), GLYD_SUMS_8(i + 56)

template <>
__device__ __forceinline__ void multiply_shared<128>(float* d, uint64_t a, uint64_t x, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : GLYD_SUMS_64(0)
      : "l"(a), "l"(x), "r"(add)
      : "memory");
}

template <>
__device__ __forceinline__ void multiply_shared<256>(float* d, uint64_t a, uint64_t x, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}"
      : GLYD_SUMS_64(0), GLYD_SUMS_64(64)
      : "l"(a), "l"(x), "r"(add)
      : "memory");
}

#undef GLYD_SUMS_64
#undef GLYD_SUMS_8

}  // namespace glyd::cuda::arch
