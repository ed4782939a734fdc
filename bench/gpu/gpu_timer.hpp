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

inline double median_of(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// A CUDA graph of `calls` calls. `launch(i, stream)` enqueues call i.
class TimedGraph {
 public:
  using Launch = std::function<Result<void>(int, cudaStream_t)>;

  static Result<TimedGraph> create(int calls, const Launch& launch) {
    using cuda::cuda_check;
    TimedGraph timed;
    timed.calls_ = calls;
    GLYD_CHECK(cuda_check(cudaStreamCreate(&timed.stream_), "cudaStreamCreate"));
    GLYD_CHECK(launch(0, timed.stream_));
    GLYD_CHECK(cuda_check(cudaStreamSynchronize(timed.stream_), "warm-up"));
    GLYD_CHECK(
        cuda_check(cudaStreamBeginCapture(timed.stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"));
    for (int i = 0; i < calls; ++i) GLYD_CHECK(launch(i, timed.stream_));
    GLYD_CHECK(cuda_check(cudaStreamEndCapture(timed.stream_, &timed.graph_), "cudaStreamEndCapture"));
    GLYD_CHECK(cuda_check(cudaGraphInstantiate(&timed.executable_, timed.graph_, 0), "cudaGraphInstantiate"));
    GLYD_CHECK(cuda_check(cudaEventCreate(&timed.begin_), "cudaEventCreate"));
    GLYD_CHECK(cuda_check(cudaEventCreate(&timed.end_), "cudaEventCreate"));
    return timed;
  }
  TimedGraph(TimedGraph&& other) noexcept { swap(other); }
  TimedGraph& operator=(TimedGraph&& other) noexcept {
    swap(other);
    return *this;
  }
  ~TimedGraph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  // Replays it: microseconds of one call.
  Result<double> replay() const {
    using cuda::cuda_check;
    GLYD_CHECK(cuda_check(cudaEventRecord(begin_, stream_), "cudaEventRecord"));
    GLYD_CHECK(cuda_check(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch"));
    GLYD_CHECK(cuda_check(cudaEventRecord(end_, stream_), "cudaEventRecord"));
    GLYD_CHECK(cuda_check(cudaStreamSynchronize(stream_), "replay"));
    float milliseconds = 0;
    GLYD_CHECK(cuda_check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime"));
    return milliseconds * 1000.0 / calls_;
  }

 private:
  TimedGraph() = default;
  void swap(TimedGraph& other) {
    std::swap(calls_, other.calls_);
    std::swap(stream_, other.stream_);
    std::swap(graph_, other.graph_);
    std::swap(executable_, other.executable_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

  int calls_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Microseconds of one call: a graph of `calls` calls, the median of `replays` replays behind one that warms up.
inline Result<double> time_in_graph(int calls, int replays, const TimedGraph::Launch& launch) {
  GLYD_TRY(const TimedGraph graph, TimedGraph::create(calls, launch));
  std::vector<double> times;
  for (int r = -1; r < replays; ++r) {
    GLYD_TRY(const double time, graph.replay());
    if (r >= 0) times.push_back(time);
  }
  return median_of(times);
}

}  // namespace glyd::bench
