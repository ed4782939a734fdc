// gpu_timer.hpp - times of kernels inside CUDA graphs, and the head line of results.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "dispatch/device.hpp"

namespace glyd::bench {

// Microseconds of one call: a graph of `calls` calls, the median of `replays` replays. `launch(i, stream)` enqueues
// call i.
inline Result<double> time_in_graph(int calls, int replays,
                                    const std::function<Result<void>(int, cudaStream_t)>& launch) {
  using cuda::cuda_check;
  cudaStream_t stream = nullptr;
  GLYD_CHECK(cuda_check(cudaStreamCreate(&stream), "cudaStreamCreate"));
  GLYD_CHECK(launch(0, stream));
  GLYD_CHECK(cuda_check(cudaStreamSynchronize(stream), "warm-up"));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  GLYD_CHECK(cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"));
  for (int i = 0; i < calls; ++i) GLYD_CHECK(launch(i, stream));
  GLYD_CHECK(cuda_check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture"));
  GLYD_CHECK(cuda_check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate"));
  cudaEvent_t begin = nullptr, end = nullptr;
  GLYD_CHECK(cuda_check(cudaEventCreate(&begin), "cudaEventCreate"));
  GLYD_CHECK(cuda_check(cudaEventCreate(&end), "cudaEventCreate"));
  std::vector<double> times;
  for (int r = -1; r < replays; ++r) {  // the first one warms up
    GLYD_CHECK(cuda_check(cudaEventRecord(begin, stream), "cudaEventRecord"));
    GLYD_CHECK(cuda_check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch"));
    GLYD_CHECK(cuda_check(cudaEventRecord(end, stream), "cudaEventRecord"));
    GLYD_CHECK(cuda_check(cudaStreamSynchronize(stream), "replay"));
    float milliseconds = 0;
    GLYD_CHECK(cuda_check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime"));
    if (r >= 0) times.push_back(milliseconds * 1000.0 / calls);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace glyd::bench
