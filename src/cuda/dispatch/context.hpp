// context.hpp - one GPU's state: its limits, cuBLAS, and which products are known to be exact.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <variant>

#include "dispatch/ahead_plan.hpp"
#include "dispatch/cublas.hpp"
#include "dispatch/device.hpp"
#include "dispatch/generic_plan.hpp"
#include "dispatch/verdicts.hpp"
#include "unpack/pack_arrays.hpp"

namespace glyd::cuda {

inline constexpr uint64_t kPartialBytes = uint64_t{4} << 20;  // of a workspace, all ones between calls
// torch's own on Hopper: 4096 KiB times 8.
inline constexpr uint64_t kCublasWorkspaceBytes = uint64_t{32} << 20;

// Which fused kernel is taken where both could serve.
enum class KernelChoice { kAuto, kNarrow, kStaged, kWide, kAhead, kGeneric };

struct ContextOptions {
  int device = 0;
  CublasOptions cublas{kCublasWorkspaceBytes, true};
  std::filesystem::path verdict_file;  // read at once, added to by save_verdicts; empty: none
  // Of every plan; for measuring.
  KernelChoice kernel = KernelChoice::kAuto;  // kGeneric where the GPU is no Hopper, whatever is asked for
  TeamChoice teams;
  WideChoice wide;
  uint32_t staged_strips = 0;
};

class Context {
 public:
  static Result<std::unique_ptr<Context>> create(const ContextOptions& options);

  const DeviceInfo& device() const { return device_; }
  const CublasOptions& cublas_options() const { return options_.cublas; }
  const ContextOptions& options() const { return options_; }
  // cuBLAS, or why there is none.
  Result<Cublas*> cublas();
  // 16 zero bytes and more, for packs without slots.
  const uint8_t* zeros() const { return zeros_.as<uint8_t>(); }

  bool find_verdict(const ProductKey& key, Verdict& verdict) const;
  void store_verdict(const ProductKey& key, const Verdict& verdict);
  // Adds what was found out since to options().verdict_file, if there is one; verdicts_text() says what came of it.
  void save_verdicts();
  std::string verdicts_text() const;

 private:
  explicit Context(const ContextOptions& options) : options_(options) {}

  ContextOptions options_;
  DeviceInfo device_;
  DeviceBuffer zeros_;
  std::mutex cublas_mutex_;
  std::unique_ptr<Cublas> cublas_;
  Result<VerdictEnvironment> environment();
  void load_verdicts();

  mutable std::mutex verdicts_mutex_;
  Verdicts verdicts_, unsaved_;
  std::string verdicts_text_;
};

// How one product runs fused: by Hopper's kernel for few tokens, its staged one for some tens, its wide one for some
// hundreds, the one that decodes ahead for more, or the generic one.
struct Route {
  std::variant<LinearPlan, StagedPlan, WidePlan, AheadPlan, GenericPlan> plan;
  const void* kernel = nullptr;
  // Of the workspace: words of sums, and of counters; both are all ones between calls. Where they do not fit into its
  // first kPartialBytes, the sums lie behind these.
  uint64_t sum_bytes = 0, arrival_bytes = 0;
  uint64_t scratch_bytes = 0;  // of the decoded matrix: of the call's scratch, or behind the first kPartialBytes

  bool sums_outside() const { return sum_bytes + arrival_bytes > kPartialBytes; }
  uint64_t workspace_bytes() const {
    if (scratch_bytes > 0) return kPartialBytes;
    return splits() == 1 ? 0 : sums_outside() ? kPartialBytes + sum_bytes : kPartialBytes;
  }
  uint32_t splits() const {
    return std::visit([](const auto& p) { return p.splits; }, plan);
  }
};

// A pack in device memory.
class DevicePack {
 public:
  // `header`: the pack's first 128 bytes; `device`: all of it, 128-byte aligned, in the memory of the context's GPU.
  static Result<std::unique_ptr<DevicePack>> open(Context& context, ByteSpan header, uint64_t pack_bytes,
                                                  const void* device);

  Context& context() const { return context_; }
  const PackHeader& header() const { return header_; }
  const PackArrays& arrays() const { return arrays_; }

  // The fused route of a product whose verdict is exact, or (free) of any; null where there is none. Cheap from the
  // second call on.
  const Route* exact_route(uint64_t tokens, bool bias);
  const Route* free_route(uint64_t tokens);
  // A route with this many splits, whatever the verdicts, on so many multiprocessors (0: all); null where the kernel
  // cannot serve it.
  const Route* route_of_splits(uint64_t tokens, uint32_t splits, uint32_t multiprocessors = 0);
  // Whether so many tokens can have a fused route at all.
  bool may_route(uint64_t tokens) const;
  // The most bytes of sums, or of a decoded matrix, that a route may keep behind the first kPartialBytes of a
  // workspace.
  uint64_t most_outside_bytes() const {
    return context_.cublas_options().workspace_bytes + header_.grid.rows * header_.grid.cols * 2;
  }
  // Forgets what exact_route found out: verdicts have changed.
  void refresh();

 private:
  DevicePack(Context& context, const PackHeader& header) : context_(context), header_(header) {}

  Context& context_;
  PackHeader header_;
  PackArrays arrays_;
  // Of few tokens, by tokens (and bias); written once under the mutex, read without it. More tokens are looked up.
  std::array<std::atomic<const Route*>, 2 * (kMostNarrowTokens + 1)> exact_{};
  std::array<std::atomic<const Route*>, kMostNarrowTokens + 1> free_{};
  std::mutex mutex_;
  std::map<std::array<uint64_t, 3>, Route> routes_;  // by tokens, splits and multiprocessors
};

}  // namespace glyd::cuda
