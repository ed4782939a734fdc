// warpgroup.cuh - the tensor core as four warps use it together: 64 rows by up to 256 tokens, the weights in registers
// or in shared memory, x in shared memory.
#pragma once

#include <cstdint>

namespace glyd::cuda::arch {

// Before a product of a warpgroup reads registers that other instructions wrote.
__device__ __forceinline__ void warpgroup_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Ends a batch of products.
__device__ __forceinline__ void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most kPending batches are unfinished.
template <uint32_t kPending>
__device__ __forceinline__ void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Gives registers of this warpgroup back to the block, or takes more of them.
template <uint32_t kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <uint32_t kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// A tile [rows, 64] of bf16 in shared memory (1024-byte aligned, rows of 128 bytes, swizzled as a tensor map of
// 128-byte swizzle writes them), as the tensor core reads it. Step s of 16 columns is at descriptor + 2 s.
__device__ __forceinline__ uint64_t tile_descriptor(uint32_t address) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62, kEightRows = uint64_t{1024 >> 4} << 32,
                     kUnused = uint64_t{1} << 16;
  return kSwizzle128 | kEightRows | kUnused | (address >> 4 & 0x3fff);
}

// d (+)= a * x^T; a: 64 x 16 bf16 (each warp 16 rows, registers as mma.m16n8k16 has them), x: kTokens x 16 by its
// descriptor, d: 64 x kTokens fp32, for every 8 tokens 4 registers as mma.m16n8k16 has them. add = 0 drops what d held.
// Asynchronous: a and d are the tensor core's until warpgroup_wait.
template <uint32_t kTokens>
__device__ void multiply_async(float* d, const uint32_t* a, uint64_t x, uint32_t add);

// The registers of 64 and 128 sums as operands of an instruction.
#define GLYD_NAMES_64                                                                \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GLYD_NAMES_64_TO_127                                                                     \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define GLYD_SUMS_8(i)                                                                                        \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])

template <>
__device__ __forceinline__ void multiply_async<32>(float* d, const uint32_t* a, uint64_t x, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
      "}, {%16, %17, %18, %19}, %20, p, 1, 1, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(add)
      : "memory");
}

template <>
__device__ __forceinline__ void multiply_async<64>(float* d, const uint32_t* a, uint64_t x, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8), GLYD_SUMS_8(16), GLYD_SUMS_8(24)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(add)
      : "memory");
}

template <>
__device__ __forceinline__ void multiply_async<128>(float* d, const uint32_t* a, uint64_t x, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" GLYD_NAMES_64
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8), GLYD_SUMS_8(16), GLYD_SUMS_8(24), GLYD_SUMS_8(32), GLYD_SUMS_8(40),
        GLYD_SUMS_8(48), GLYD_SUMS_8(56)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(add)
      : "memory");
}

template <>
__device__ __forceinline__ void multiply_async<256>(float* d, const uint32_t* a, uint64_t x, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %133, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" GLYD_NAMES_64 ", " GLYD_NAMES_64_TO_127
      "}, {%128, %129, %130, %131}, %132, p, 1, 1, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8), GLYD_SUMS_8(16), GLYD_SUMS_8(24), GLYD_SUMS_8(32), GLYD_SUMS_8(40),
        GLYD_SUMS_8(48), GLYD_SUMS_8(56), GLYD_SUMS_8(64), GLYD_SUMS_8(72), GLYD_SUMS_8(80), GLYD_SUMS_8(88),
        GLYD_SUMS_8(96), GLYD_SUMS_8(104), GLYD_SUMS_8(112), GLYD_SUMS_8(120)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(add)
      : "memory");
}

// d (+)= a * x^T, both in shared memory by their descriptors (tile_descriptor); a: 64 x 16, x: kTokens x 16, d as
// above.
template <uint32_t kTokens>
__device__ void multiply_shared(float* d, uint64_t a, uint64_t x, uint32_t add);

template <>
__device__ __forceinline__ void multiply_shared<256>(float* d, uint64_t a, uint64_t x, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" GLYD_NAMES_64 ", " GLYD_NAMES_64_TO_127
      "}, %128, %129, p, 1, 1, 0, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8), GLYD_SUMS_8(16), GLYD_SUMS_8(24), GLYD_SUMS_8(32), GLYD_SUMS_8(40),
        GLYD_SUMS_8(48), GLYD_SUMS_8(56), GLYD_SUMS_8(64), GLYD_SUMS_8(72), GLYD_SUMS_8(80), GLYD_SUMS_8(88),
        GLYD_SUMS_8(96), GLYD_SUMS_8(104), GLYD_SUMS_8(112), GLYD_SUMS_8(120)
      : "l"(a), "l"(x), "r"(add)
      : "memory");
}

// The low word of a tile's descriptor: the high one is the same for all.
inline constexpr uint32_t kTileDescriptorHigh = 1u << 30 | 1024 >> 4;
__device__ __forceinline__ uint32_t tile_descriptor_low(uint32_t address) { return 1u << 16 | address >> 4; }

// d (+)= a * b^T, both in shared memory by the low words of their descriptors; a: 64 x 16, b: kRows x 16, d: 64 x
// kRows, in registers as above.
template <uint32_t kRows>
__device__ void multiply_staged(float* d, uint32_t a, uint32_t b, uint32_t add);

template <>
__device__ __forceinline__ void multiply_staged<32>(float* d, uint32_t a, uint32_t b, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %18, 0;\nmov.b64 a, {%16, %19};\nmov.b64 b, {%17, %19};\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
      "}, a, b, p, 1, 1, 0, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8)
      : "r"(a), "r"(b), "r"(add), "n"(kTileDescriptorHigh)
      : "memory");
}

template <>
__device__ __forceinline__ void multiply_staged<48>(float* d, uint32_t a, uint32_t b, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %26, 0;\nmov.b64 a, {%24, %27};\nmov.b64 b, {%25, %27};\n"
      "wgmma.mma_async.sync.aligned.m64n48k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23"
      "}, a, b, p, 1, 1, 0, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8), GLYD_SUMS_8(16)
      : "r"(a), "r"(b), "r"(add), "n"(kTileDescriptorHigh)
      : "memory");
}

template <>
__device__ __forceinline__ void multiply_staged<64>(float* d, uint32_t a, uint32_t b, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %34, 0;\nmov.b64 a, {%32, %35};\nmov.b64 b, {%33, %35};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, a, b, p, 1, 1, 0, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8), GLYD_SUMS_8(16), GLYD_SUMS_8(24)
      : "r"(a), "r"(b), "r"(add), "n"(kTileDescriptorHigh)
      : "memory");
}

template <>
__device__ __forceinline__ void multiply_staged<96>(float* d, uint32_t a, uint32_t b, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %50, 0;\nmov.b64 a, {%48, %51};\nmov.b64 b, {%49, %51};\n"
      "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
      "}, a, b, p, 1, 1, 0, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8), GLYD_SUMS_8(16), GLYD_SUMS_8(24), GLYD_SUMS_8(32), GLYD_SUMS_8(40)
      : "r"(a), "r"(b), "r"(add), "n"(kTileDescriptorHigh)
      : "memory");
}

template <>
__device__ __forceinline__ void multiply_staged<128>(float* d, uint32_t a, uint32_t b, uint32_t add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %66, 0;\nmov.b64 a, {%64, %67};\nmov.b64 b, {%65, %67};\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" GLYD_NAMES_64 "}, a, b, p, 1, 1, 0, 0;\n}"
      : GLYD_SUMS_8(0), GLYD_SUMS_8(8), GLYD_SUMS_8(16), GLYD_SUMS_8(24), GLYD_SUMS_8(32), GLYD_SUMS_8(40),
        GLYD_SUMS_8(48), GLYD_SUMS_8(56)
      : "r"(a), "r"(b), "r"(add), "n"(kTileDescriptorHigh)
      : "memory");
}

#undef GLYD_SUMS_8
#undef GLYD_NAMES_64_TO_127
#undef GLYD_NAMES_64

}  // namespace glyd::cuda::arch
