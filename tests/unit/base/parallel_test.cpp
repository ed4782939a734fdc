#include "base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace glyd {
namespace {

TEST(ParallelFor, CoversEveryIndexOnce) {
  for (const uint64_t count : {0u, 1u, 7u, 64u, 1000u}) {
    for (const uint64_t grain : {0u, 1u, 3u, 64u, 5000u}) {
      for (const int threads : {1, 2, 5}) {
        std::vector<std::atomic<int>> seen(count);
        parallel_for(count, grain, threads, [&](uint64_t begin, uint64_t end) {
          for (uint64_t i = begin; i < end; ++i) ++seen[i];
        });
        for (const auto& times : seen) EXPECT_EQ(times.load(), 1);
      }
    }
  }
}

TEST(ParallelFor, NestedCallsFinish) {
  std::atomic<int> total{0};
  parallel_for(8, 1, 4, [&](uint64_t, uint64_t) {
    parallel_for(10, 1, 4, [&](uint64_t begin, uint64_t end) { total += static_cast<int>(end - begin); });
  });
  EXPECT_EQ(total.load(), 80);
}

TEST(ParallelFor, RethrowsAndStaysUsable) {
  EXPECT_THROW(parallel_for(100, 1, 4,
                            [](uint64_t begin, uint64_t) {
                              if (begin == 37) throw std::runtime_error("37");
                            }),
               std::runtime_error);
  std::atomic<int> ran{0};
  parallel_for(10, 1, 4, [&](uint64_t, uint64_t) { ++ran; });
  EXPECT_EQ(ran.load(), 10);
}

TEST(ParallelFor, SeveralCallersAtOnce) {
  std::atomic<uint64_t> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) parallel_for(20, 1, 3, [&](uint64_t begin, uint64_t end) { total += end - begin; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 4u * 50 * 20);
}

}  // namespace
}  // namespace glyd
