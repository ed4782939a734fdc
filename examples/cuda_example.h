/* cuda_example.h - what the examples for the GPU share: calls that end the program when they fail, memory, weights. */
#ifndef CUDA_EXAMPLE_H
#define CUDA_EXAMPLE_H

#include <cuda_runtime_api.h>
#include <glyd/cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program unless a call of libglyd_cuda went well. */
static void check(const char* what, glyd_status status) {
  if (status == GLYD_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, glyd_cuda_status_text(status), glyd_cuda_last_error());
  exit(1);
}

static void check_cuda(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

static void* host_memory(size_t bytes) {
  void* p = malloc(bytes);
  if (p != NULL) return p;
  fprintf(stderr, "out of memory\n");
  exit(1);
}

/* Device memory, aligned to 256 bytes as cudaMalloc does; of `from` if that is given. */
static void* device_memory(size_t bytes, const void* from) {
  void* p = NULL;
  check_cuda("cudaMalloc", cudaMalloc(&p, bytes));
  if (from != NULL) check_cuda("cudaMemcpy", cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice));
  return p;
}

/* bf16 numbers distributed much as trained weights are: a sum of uniform ones, rounded by cutting off. */
static uint16_t* random_weights(size_t count, float scale) {
  uint16_t* values = host_memory(count * sizeof *values);
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int j = 0; j < 6; ++j) {
      state = state * 1664525u + 1013904223u;
      sum += (float)(state >> 8) / 16777216.0f - 0.5f;
    }
    sum *= scale;
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    values[i] = (uint16_t)(bits >> 16);
  }
  return values;
}

#endif
