#include "base/parallel.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace glyd {
namespace {

thread_local bool inside_parallel_for = false;

// One parallel_for call: workers take ranges until none is left.
struct Job {
  uint64_t count, grain;
  const std::function<void(uint64_t, uint64_t)>* body;
  std::atomic<uint64_t> next{0};
  int helpers_wanted;       // guarded by the pool's mutex
  int helpers_running = 0;  // likewise
  std::exception_ptr error{};
  std::mutex error_mutex{};

  void work() {
    inside_parallel_for = true;
    try {
      for (;;) {
        const uint64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= count) break;
        (*body)(begin, std::min(count, begin + grain));
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);  // the others stop at their next range
      const std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
    inside_parallel_for = false;
  }
};

class Pool {
 public:
  void run(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      try {
        while (static_cast<int>(workers_.size()) < job.helpers_wanted) workers_.emplace_back([this] { loop(); });
      } catch (const std::system_error&) {
        // No more threads to be had here (a limit on processes or memory): those that there are do the work.
      }
      jobs_.push_back(&job);
    }
    wake_.notify_all();
    job.work();
    std::unique_lock lock(mutex_);
    std::erase(jobs_, &job);
    done_.wait(lock, [&] { return job.helpers_running == 0; });
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      wake_.wait(lock, [&] { return stop_ || (job = take()) != nullptr; });
      if (job == nullptr) return;
      lock.unlock();
      job->work();
      lock.lock();
      if (--job->helpers_running == 0) done_.notify_all();
    }
  }

  Job* take() {
    for (Job* job : jobs_) {
      if (job->helpers_wanted > 0) {
        --job->helpers_wanted;
        ++job->helpers_running;
        return job;
      }
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  std::vector<Job*> jobs_;
  bool stop_ = false;
};

// A child of fork() inherits no threads: it gets a pool of its own, and the parent's is left as it is.
Pool*& pool_slot() {
  static Pool* pool = nullptr;
  return pool;
}

Pool& pool() {
  static std::mutex mutex;
  static const bool registered = [] {
    pthread_atfork(nullptr, nullptr, [] { pool_slot() = nullptr; });
    return true;
  }();
  (void)registered;
  const std::lock_guard lock(mutex);
  if (pool_slot() == nullptr) pool_slot() = new Pool;  // lives as long as the process: threads may still run at exit
  return *pool_slot();
}

}  // namespace

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::max(1, CPU_COUNT(&set));
}

int resolve_threads(int threads) { return threads > 0 ? std::min(threads, 1024) : available_cpus(); }

void parallel_for(uint64_t count, uint64_t grain, int threads, const std::function<void(uint64_t, uint64_t)>& body) {
  if (count == 0) return;
  grain = std::max<uint64_t>(grain, 1);
  const uint64_t ranges = count / grain + (count % grain != 0 ? 1 : 0);
  const int used = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(resolve_threads(threads)), ranges));
  if (used <= 1 || inside_parallel_for) {
    for (uint64_t begin = 0; begin < count; begin += grain) body(begin, std::min(count, begin + grain));
    return;
  }
  Job job{.count = count, .grain = grain, .body = &body, .helpers_wanted = used - 1};
  pool().run(job);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace glyd
