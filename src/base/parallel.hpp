// parallel.hpp - a process-wide pool of worker threads.
#pragma once

#include <cstdint>
#include <functional>

namespace glyd {

// CPUs available to this process (its affinity mask), at least 1.
int available_cpus();

// What a caller's `threads` argument means: 0 or less is available_cpus().
int resolve_threads(int threads);

// Runs body(begin, end) over disjoint ranges that cover 0..count-1, each a multiple of `grain` long but the last, on at
// most `threads` threads, the caller's among them. Returns when all are done. Ranges are handed out as threads come
// free, so `body` must not depend on which thread runs what. An exception from `body` is rethrown here after the others
// have stopped. Nested calls run on the caller's thread alone.
void parallel_for(uint64_t count, uint64_t grain, int threads, const std::function<void(uint64_t, uint64_t)>& body);

}  // namespace glyd
