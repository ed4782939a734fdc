/* cuda.h - packed bf16 tensors on an NVIDIA GPU: pack, decode, look up rows, multiply. Library: libglyd_cuda. Format:
 * docs/spec/weights.md.
 *
 * A context belongs to one GPU. A pack is the same bytes as on the CPU (glyd/weights.h), in device memory that starts
 * at a multiple of 128. Calls that take a stream (a cudaStream_t as void*) only enqueue work there: they do not
 * allocate, do not synchronise, and may be captured into a CUDA graph, unless they say otherwise. Memory is the
 * caller's. A context and its packs may be used from several threads; a workspace belongs to one stream at a time.
 *
 * Packs are read without trust: whatever the arrays hold, kernels read and write inside the caller's memory.
 * glyd_pack_validate on the CPU finds damage.
 */
#ifndef GLYD_CUDA_H
#define GLYD_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/export.h"
#include "glyd/status.h"
#include "glyd/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As glyd_abi_version, glyd_status_text and glyd_last_error, but of this library. */
#define GLYD_CUDA_ABI_VERSION 1
GLYD_API uint32_t glyd_cuda_abi_version(void) GLYD_NOEXCEPT;
GLYD_API const char* glyd_cuda_status_text(glyd_status status) GLYD_NOEXCEPT;
GLYD_API const char* glyd_cuda_last_error(void) GLYD_NOEXCEPT;

typedef struct glyd_cuda_context glyd_cuda_context;
typedef struct glyd_cuda_pack glyd_cuda_pack;

typedef struct glyd_cuda_options {
  size_t struct_size;
  int32_t device; /* CUDA's number of the GPU */
  uint32_t
      full_precision_reduction;    /* 1: as torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False */
  uint64_t cublas_workspace_bytes; /* 0: 32 MiB, torch's own on Hopper; exactness depends on it */
  const char* verdict_file; /* a path: verdicts on exactness are read from there (this loads cuBLAS), and those of
                               glyd_cuda_prepare added to it; null: no file is touched */
} glyd_cuda_options;

/* GLYD_ERROR_UNSUPPORTED where there is no GPU, or none that this build serves. `options` may be null. */
GLYD_API glyd_status glyd_cuda_create(const glyd_cuda_options* options, glyd_cuda_context** context) GLYD_NOEXCEPT;
/* What became of options.verdict_file: how many verdicts were read or added, or why not (neither is an error of
 * another call: without the file they are found out again). "" where there is none. Valid until this thread's next
 * call of this function. Never null. */
GLYD_API const char* glyd_cuda_verdict_file_text(glyd_cuda_context* context) GLYD_NOEXCEPT;
/* Its packs must be closed before. */
GLYD_API void glyd_cuda_destroy(glyd_cuda_context* context) GLYD_NOEXCEPT;

/* A handle on a pack in device memory, which must outlive it. `header` is host memory: the pack's first 128 bytes.
 * Touches no device memory. */
GLYD_API glyd_status glyd_cuda_open(glyd_cuda_context* context, const void* header, uint64_t pack_bytes,
                                    const void* device_pack, glyd_cuda_pack** pack) GLYD_NOEXCEPT;
GLYD_API void glyd_cuda_close(glyd_cuda_pack* pack) GLYD_NOEXCEPT;

/* The most bytes that packing a tensor of this shape writes, in any layout, and the device memory it works in. Either
 * may be null. */
GLYD_API glyd_status glyd_cuda_pack_bound(const glyd_shape* shape, uint64_t* pack_bytes,
                                          uint64_t* workspace_bytes) GLYD_NOEXCEPT;

typedef struct glyd_cuda_pack_call {
  size_t struct_size;
  const uint16_t* bf16; /* device memory: stack*rows*cols values in the source's order, as glyd_pack has them */
  glyd_shape shape;
  glyd_layout layout; /* GLYD_LAYOUT_AUTO: as glyd_pack chooses */
  void* pack;         /* device memory, 128-byte aligned */
  uint64_t pack_capacity;
  void* workspace; /* device memory, 16-byte aligned, of any content; apart from the others */
  uint64_t workspace_bytes;
  void* stream;
} glyd_cuda_pack_call;

/* Packs a tensor that lies on the GPU: glyd_pack's bytes exactly. Writes the pack's first 128 bytes to `header` too
 * (host memory; glyd_cuda_open takes it, glyd_pack_read_info shows the layout) and the pack's length to `pack_bytes`.
 * Layouts `fast` and `raw` are made on the GPU. `small`, and tensors for which `fast` does not pay, go through the CPU:
 * bf16 to the host, glyd_pack on all CPUs, the pack back; that takes host memory for the tensor and its pack.
 * Synchronises the stream, several times, and is not for capture. A capacity that is too small is
 * GLYD_ERROR_BUFFER_TOO_SMALL; whatever fails, `header` and `pack_bytes` are left alone. */
GLYD_API glyd_status glyd_cuda_pack_tensor(glyd_cuda_context* context, const glyd_cuda_pack_call* call, void* header,
                                           uint64_t* pack_bytes) GLYD_NOEXCEPT;

/* The whole tensor in the source's order, stack*rows*cols values. */
GLYD_API glyd_status glyd_cuda_unpack(glyd_cuda_pack* pack, uint16_t* bf16, void* stream) GLYD_NOEXCEPT;
/* One matrix of the stack, as [rows, cols] whatever the source's order: what glyd_cuda_linear multiplies by. */
GLYD_API glyd_status glyd_cuda_unpack_matrix(glyd_cuda_pack* pack, uint64_t matrix, uint16_t* bf16,
                                             void* stream) GLYD_NOEXCEPT;
/* Embedding look-up: out[i * cols ...] = row `indices[i]` of matrix 0; `indices` is device memory. An index that is no
 * row gives zeros. */
GLYD_API glyd_status glyd_cuda_rows(glyd_cuda_pack* pack, const int64_t* indices, uint64_t count, uint16_t* out,
                                    void* stream) GLYD_NOEXCEPT;

/* The bytes of workspace with which glyd_cuda_linear runs whatever its route, and with which it runs any fused route of
 * up to 64 tokens; at more, sums over splits of k may want room behind those first 4 MiB, and a call that has none
 * decodes. Either may be null. */
GLYD_API glyd_status glyd_cuda_linear_workspace(glyd_cuda_pack* pack, uint64_t* bytes,
                                                uint64_t* fused_bytes) GLYD_NOEXCEPT;
/* Once for each workspace (256-byte aligned), before its first use. Between calls its first 4 MiB must be left alone.
 */
GLYD_API glyd_status glyd_cuda_init_workspace(glyd_cuda_context* context, void* workspace, uint64_t bytes,
                                              void* stream) GLYD_NOEXCEPT;

typedef struct glyd_cuda_linear_call {
  size_t struct_size;
  uint64_t matrix;   /* of the stack */
  const uint16_t* x; /* [tokens, cols], x_stride values a row */
  uint64_t tokens, x_stride;
  const uint16_t* bias; /* [rows], or null */
  uint16_t* y;          /* [tokens, rows], y_stride values a row */
  uint64_t y_stride;
  uint32_t any_order;    /* 0: the bits of cuBLAS on the decoded weights; 1: fp32 sums in whatever order is fastest */
  uint32_t early_launch; /* 1: programmatic dependent launch: weights are fetched before the kernel before this one in
                            the stream has ended. That kernel must not write the pack or the workspace. */
  void* workspace;
  uint64_t workspace_bytes;
  void* stream;
  uint32_t multiprocessors; /* 0: all. Else a fused kernel takes at most so many (two at least), that products on other
                               streams, with workspaces of their own, may run beside it; the sums are the same */
  void* scratch; /* device memory, 256-byte aligned, of any content before and after: for the decoded matrix of fused
                    products of hundreds of tokens. Null: what of the workspace lies behind its first 4 MiB. It belongs
                    to the stream until the call has ended there. Other routes do not touch it */
  uint64_t scratch_bytes; /* of glyd_cuda_route; fewer, and the call decodes. Rows and columns rounded up to multiples
                             of 128, times 2, are always enough */
} glyd_cuda_linear_call;

/* y = x W^T (+ bias). Sums in fp32, one rounding to bf16. Exact products run fused only where glyd_cuda_prepare has
 * found them equal to cuBLAS's; else the matrix is decoded to the workspace and multiplied by cuBLAS. "Exact" is of
 * finite results and infinities; a NaN is a NaN of either's making. */
GLYD_API glyd_status glyd_cuda_linear(glyd_cuda_pack* pack, const glyd_cuda_linear_call* call) GLYD_NOEXCEPT;

/* glyd_cuda_linear(packs[i], calls + i) for i = 0 ... count - 1, say the projections of one input: each by its own
 * route and its own sums. All calls have the struct_size of the first, by which the array is walked. Arguments of all
 * are checked before the first is enqueued. Members may share a workspace where they share the stream. */
GLYD_API glyd_status glyd_cuda_linear_group(glyd_cuda_pack* const* packs, const glyd_cuda_linear_call* calls,
                                            uint64_t count) GLYD_NOEXCEPT;

typedef struct glyd_cuda_experts_call {
  size_t struct_size;
  const uint16_t* x; /* [tokens, cols], sorted by expert, x_stride values a row */
  uint64_t tokens, x_stride;
  const int32_t* ends;  /* device memory, [stack]: expert e has the rows ends[e - 1] (0 for the first) to ends[e] */
  uint64_t most_tokens; /* of one expert, where the product is exact: at most 64; 0: `tokens` */
  const uint16_t* bias; /* [stack, rows], or null */
  uint16_t* y;          /* [tokens, rows], y_stride values a row; rows of no expert are left alone */
  uint64_t y_stride;
  uint32_t any_order; /* 0: each expert as glyd_cuda_linear; 1: fp32 sums in ascending k */
  void* stream;
} glyd_cuda_experts_call;

/* The products of all matrices of a stack, each by its own rows of x, in one launch; experts without rows cost nothing.
 * `ends` is read on the device: the host does not know how many tokens an expert has, so an exact product wants
 * glyd_cuda_prepare to have found every number from 1 to most_tokens exact (an expert with more is then multiplied, but
 * maybe in another order). GLYD_ERROR_UNSUPPORTED, with the reason, where only glyd_cuda_linear an expert will do:
 * other layouts than `fast`, products that are not exact when fused, rows of x that are not aligned to 16 bytes. Needs
 * no workspace. */
GLYD_API glyd_status glyd_cuda_linear_experts(glyd_cuda_pack* pack, const glyd_cuda_experts_call* call) GLYD_NOEXCEPT;

/* For each number of tokens, unless known: decodes the first matrix, multiplies several inputs by cuBLAS as
 * torch.nn.functional.linear does and by the fused kernel, compares bits, and keeps the verdict in the context for
 * every pack of this shape. Allocates device memory, synchronises; not for capture. */
GLYD_API glyd_status glyd_cuda_prepare(glyd_cuda_pack* pack, const uint64_t* tokens, uint64_t count,
                                       uint32_t with_bias) GLYD_NOEXCEPT;

typedef enum glyd_cuda_route_kind { GLYD_CUDA_ROUTE_DECODE = 0, GLYD_CUDA_ROUTE_FUSED = 1 } glyd_cuda_route_kind;
typedef struct glyd_cuda_route_info {
  size_t struct_size;
  glyd_cuda_route_kind kind;
  uint32_t exact;         /* known to give cuBLAS's bits */
  uint32_t splits;        /* of k, on the fused route */
  const char* reason;     /* a static string */
  uint64_t scratch_bytes; /* that the fused route wants: of the call's scratch, or behind the workspace's first 4 MiB */
} glyd_cuda_route_info;
/* What glyd_cuda_linear would run, given the memory that it wants. */
GLYD_API glyd_status glyd_cuda_route(glyd_cuda_pack* pack, uint64_t tokens, uint32_t with_bias, uint32_t any_order,
                                     glyd_cuda_route_info* info) GLYD_NOEXCEPT;

/* Does the comparison of glyd_cuda_prepare anew and says how many outputs differ (0 where the product is exact).
 * Changes no verdict. */
GLYD_API glyd_status glyd_cuda_self_check(glyd_cuda_pack* pack, uint64_t tokens, uint32_t with_bias,
                                          uint64_t* differing) GLYD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* GLYD_CUDA_H */
