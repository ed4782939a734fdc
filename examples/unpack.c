/* unpack.c - packs a matrix on the CPU, decodes it on the GPU, whole and by rows, and compares every bit. C99.
 *
 *   cc unpack.c $(pkg-config --cflags --libs glyd_cuda glyd) -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcudart
 */
#include "cuda_example.h"

enum { kRows = 2000, kCols = 1536 };
static const size_t kValues = (size_t)kRows * kCols;

static void pack_on_cpu(const uint16_t* weights, void** pack, uint64_t* bytes) {
  const glyd_shape shape = {.stack = 1, .rows = kRows, .cols = kCols};
  uint64_t capacity = 0;
  glyd_status status = glyd_pack_bound(&shape, &capacity);
  *pack = host_memory(capacity);
  if (status == GLYD_OK) status = glyd_pack(weights, &shape, GLYD_LAYOUT_SMALL, 0, *pack, capacity, bytes);
  if (status == GLYD_OK) return;
  fprintf(stderr, "glyd_pack: %s: %s\n", glyd_status_text(status), glyd_last_error());
  exit(1);
}

static size_t count_differing(const uint16_t* expected, const uint16_t* device, size_t count) {
  uint16_t* got = host_memory(count * sizeof *got);
  check_cuda("cudaMemcpy", cudaMemcpy(got, device, count * sizeof *got, cudaMemcpyDeviceToHost));
  size_t differing = 0;
  for (size_t i = 0; i < count; ++i) differing += got[i] != expected[i];
  free(got);
  return differing;
}

int main(void) {
  glyd_cuda_context* context = NULL;
  check("glyd_cuda_create", glyd_cuda_create(NULL, &context));
  uint16_t* weights = random_weights(kValues, 0.05f);
  void* packed = NULL;
  uint64_t bytes = 0;
  pack_on_cpu(weights, &packed, &bytes);

  /* On the GPU a pack is the same bytes; its header is read from host memory. */
  void* device_pack = device_memory(bytes, packed);
  glyd_cuda_pack* pack = NULL;
  check("glyd_cuda_open", glyd_cuda_open(context, packed, bytes, device_pack, &pack));

  uint16_t* decoded = device_memory(kValues * sizeof *decoded, NULL);
  check("glyd_cuda_unpack", glyd_cuda_unpack(pack, decoded, NULL));
  size_t differing = count_differing(weights, decoded, kValues);

  /* As an embedding is looked up. */
  const int64_t indices[3] = {1999, 0, 77};
  int64_t* device_indices = device_memory(sizeof indices, indices);
  check("glyd_cuda_rows", glyd_cuda_rows(pack, device_indices, 3, decoded, NULL));
  for (int i = 0; i < 3; ++i) {
    differing += count_differing(weights + indices[i] * kCols, decoded + i * kCols, kCols);
  }

  printf("%d x %d weights, %.3f bits each: %zu values differ\n", kRows, kCols, 8.0 * (double)bytes / (double)kValues,
         differing);
  glyd_cuda_close(pack);
  glyd_cuda_destroy(context);
  return differing == 0 ? 0 : 1;
}
