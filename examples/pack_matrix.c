/* pack_matrix.c - packs a matrix, checks that it comes back bit for bit, multiplies from the packed bytes. C99.
 *
 *   cc pack_matrix.c $(pkg-config --cflags --libs glyd) -o pack_matrix && ./pack_matrix
 */
#include <glyd/weights.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRows = 512, kCols = 768 };

static int failed(const char* what, glyd_status status) {
  fprintf(stderr, "%s: %s: %s\n", what, glyd_status_text(status), glyd_last_error());
  return 1;
}

/* bf16 of a float: the upper half of its bits, rounded to nearest even. */
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Weights look like a normal distribution: a sum of uniforms does here. */
static void fill(uint16_t* values, size_t count, float scale) {
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int j = 0; j < 6; ++j) {
      state = state * 1664525u + 1013904223u;
      sum += (float)(state >> 8) / 16777216.0f - 0.5f;
    }
    values[i] = to_bf16(sum * scale);
  }
}

static int run(uint16_t* weights, uint16_t* again, void* pack, uint64_t capacity) {
  const glyd_shape shape = {.stack = 1, .rows = kRows, .cols = kCols};
  uint64_t bytes = 0;
  glyd_status status = glyd_pack(weights, &shape, GLYD_LAYOUT_FAST, 0, pack, capacity, &bytes);
  if (status != GLYD_OK) return failed("glyd_pack", status);

  status = glyd_decode(pack, bytes, 0, again, (uint64_t)kRows * kCols);
  if (status != GLYD_OK) return failed("glyd_decode", status);
  if (memcmp(weights, again, sizeof(uint16_t) * kRows * kCols) != 0) {
    fprintf(stderr, "decoded weights differ\n");
    return 1;
  }

  static uint16_t x[kCols], y[kRows];
  fill(x, kCols, 1.0f);
  status = glyd_linear(pack, bytes, 0, x, 1, kCols, NULL, y, kRows, 0);
  if (status != GLYD_OK) return failed("glyd_linear", status);

  printf("glyd %s (%s): %d x %d weights: %.3f bits each, exact; y[0] = 0x%04x\n", glyd_version(), glyd_cpu_isa(), kRows,
         kCols, 8.0 * (double)bytes / ((double)kRows * kCols), y[0]);
  return 0;
}

int main(void) {
  if (glyd_abi_version() != GLYD_ABI_VERSION) {
    fprintf(stderr, "the library's ABI is %u, this program's %u\n", glyd_abi_version(), GLYD_ABI_VERSION);
    return 1;
  }
  const glyd_shape shape = {.stack = 1, .rows = kRows, .cols = kCols};
  uint64_t capacity = 0;
  const glyd_status status = glyd_pack_bound(&shape, &capacity);
  if (status != GLYD_OK) return failed("glyd_pack_bound", status);
  uint16_t* weights = malloc(sizeof(uint16_t) * kRows * kCols);
  uint16_t* again = malloc(sizeof(uint16_t) * kRows * kCols);
  void* pack = malloc((size_t)capacity);
  int result = 1;
  if (weights != NULL && again != NULL && pack != NULL) {
    fill(weights, (size_t)kRows * kCols, 0.05f);
    result = run(weights, again, pack, capacity);
  }
  free(weights);
  free(again);
  free(pack);
  return result;
}
