/* linear.c - packs a matrix on the GPU, multiplies by it from the packed bytes, and compares with cuBLAS on the same
 * weights as bf16: the products are equal bit for bit. C99.
 *
 *   cc linear.c $(pkg-config --cflags --libs glyd_cuda) -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcudart
 */
#include "cuda_example.h"

enum { kRows = 4096, kCols = 4096, kTokens = 8 };
static const size_t kValues = (size_t)kRows * kCols, kOutputs = (size_t)kTokens * kRows;

/* Packs the tensor in device memory; the pack's bytes stay there. */
static glyd_cuda_pack* pack_weights(glyd_cuda_context* context, const uint16_t* device_weights, glyd_layout layout,
                                    uint64_t* bytes) {
  const glyd_shape shape = {.stack = 1, .rows = kRows, .cols = kCols};
  uint64_t capacity = 0, workspace_bytes = 0;
  check("glyd_cuda_pack_bound", glyd_cuda_pack_bound(&shape, &capacity, &workspace_bytes));
  void* workspace = device_memory(workspace_bytes, NULL);
  unsigned char header[128];
  const glyd_cuda_pack_call call = {.struct_size = sizeof call,
                                    .bf16 = device_weights,
                                    .shape = shape,
                                    .layout = layout,
                                    .pack = device_memory(capacity, NULL),
                                    .pack_capacity = capacity,
                                    .workspace = workspace,
                                    .workspace_bytes = workspace_bytes};
  check("glyd_cuda_pack_tensor", glyd_cuda_pack_tensor(context, &call, header, bytes));
  check_cuda("cudaFree", cudaFree(workspace));
  glyd_cuda_pack* pack = NULL;
  check("glyd_cuda_open", glyd_cuda_open(context, header, *bytes, call.pack, &pack));
  return pack;
}

/* y = x W^T to host memory. */
static void multiply(glyd_cuda_context* context, glyd_cuda_pack* pack, const uint16_t* device_x, uint16_t* y) {
  uint64_t workspace_bytes = 0;
  check("glyd_cuda_linear_workspace", glyd_cuda_linear_workspace(pack, &workspace_bytes, NULL));
  void* workspace = device_memory(workspace_bytes, NULL);
  check("glyd_cuda_init_workspace", glyd_cuda_init_workspace(context, workspace, workspace_bytes, NULL));

  /* Once a shape: from then on the fused kernel serves it, if it was found to give cuBLAS's bits. */
  const uint64_t tokens = kTokens;
  check("glyd_cuda_prepare", glyd_cuda_prepare(pack, &tokens, 1, 0));
  glyd_cuda_route_info route = {.struct_size = sizeof route};
  check("glyd_cuda_route", glyd_cuda_route(pack, kTokens, 0, 0, &route));
  printf("  %s\n", route.reason);

  uint16_t* device_y = device_memory(kOutputs * sizeof *device_y, NULL);
  const glyd_cuda_linear_call call = {.struct_size = sizeof call,
                                      .x = device_x,
                                      .tokens = kTokens,
                                      .x_stride = kCols,
                                      .y = device_y,
                                      .y_stride = kRows,
                                      .workspace = workspace,
                                      .workspace_bytes = workspace_bytes};
  check("glyd_cuda_linear", glyd_cuda_linear(pack, &call));
  check_cuda("cudaMemcpy", cudaMemcpy(y, device_y, kOutputs * sizeof *y, cudaMemcpyDeviceToHost));
  check_cuda("cudaFree", cudaFree(device_y));
  check_cuda("cudaFree", cudaFree(workspace));
}

int main(void) {
  glyd_cuda_context* context = NULL;
  check("glyd_cuda_create", glyd_cuda_create(NULL, &context));
  uint16_t* weights = random_weights(kValues, 0.05f);
  uint16_t* x = random_weights((size_t)kTokens * kCols, 1.0f);
  uint16_t* device_weights = device_memory(kValues * sizeof *weights, weights);
  uint16_t* device_x = device_memory((size_t)kTokens * kCols * sizeof *x, x);

  /* `raw` is bf16 as it is, so its product is cuBLAS's own. */
  const glyd_layout layouts[2] = {GLYD_LAYOUT_FAST, GLYD_LAYOUT_RAW};
  uint16_t* y[2];
  for (int i = 0; i < 2; ++i) {
    uint64_t bytes = 0;
    glyd_cuda_pack* pack = pack_weights(context, device_weights, layouts[i], &bytes);
    printf("%d x %d weights, %.3f bits each:\n", kRows, kCols, 8.0 * (double)bytes / (double)kValues);
    y[i] = host_memory(kOutputs * sizeof *y[i]);
    multiply(context, pack, device_x, y[i]);
    glyd_cuda_close(pack);
  }
  glyd_cuda_destroy(context);

  size_t differing = 0;
  for (size_t i = 0; i < kOutputs; ++i) differing += y[0][i] != y[1][i];
  printf("%zu of %zu outputs differ\n", differing, kOutputs);
  return differing == 0 ? 0 : 1;
}
