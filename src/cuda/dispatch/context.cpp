#include "dispatch/context.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "ahead/ahead_instances.hpp"
#include "gemm/linear_instances.hpp"
#include "generic/generic_instances.hpp"
#include "staged/staged_instances.hpp"
#include "wide/wide_instances.hpp"

namespace glyd::cuda {
namespace {

// Raised with each change of the order in which a kernel adds: verdicts on the old one are of no use.
constexpr int kSumsRevision = 1;

const void* kernel_of(const LinearPlan& plan) {
  const bool split = plan.splits > 1;
  switch (token_tile(plan.tokens)) {
    case 1:
      return linear_kernel<1>(split);
    case 8:
      return linear_kernel<8>(split);
    case 16:
      return linear_kernel<16>(split);
    case 32:
      return linear_kernel<32>(split);
    default:
      return linear_kernel<64>(split);
  }
}

const void* kernel_of(const WidePlan& plan) {
  switch (plan.tile_tokens) {
    case 32:
      return wide_kernel<32>();
    case 64:
      return wide_kernel<64>();
    case 128:
      return wide_kernel<128>();
    default:
      return wide_kernel<256>();
  }
}

template <uint32_t kStrips>
const void* staged_kernel_of(const StagedPlan& plan) {
  return plan.warpgroups() == 1 ? staged_kernel<kStrips, 1>() : staged_kernel<kStrips, 2>();
}

const void* kernel_of(const StagedPlan& plan) {
  switch (plan.tile_strips) {
    case 2:
      return staged_kernel_of<2>(plan);
    case 3:
      return staged_kernel_of<3>(plan);
    case 4:
      return staged_kernel_of<4>(plan);
    case 6:
      return staged_kernel_of<6>(plan);
    default:
      return staged_kernel_of<8>(plan);
  }
}

const void* kernel_of(const AheadPlan&) { return ahead_kernel(); }

const void* kernel_of(const GenericPlan& plan) { return generic_kernel(plan.tiles); }

// The kernel for few tokens alone up to here; above, all that take so many are weighed: that one to kMostNarrowTokens,
// the staged to 128, the wide to kMostWideTokens, decoding ahead from kLeastAheadTokens on.
constexpr uint32_t kNarrowTokens = 16;

// Routes weighed against each other.
class Candidates {
 public:
  explicit Candidates(uint32_t tokens) : tokens_(tokens) {}

  // Few tokens keep their sums to the first kPartialBytes, so that a caller without more can multiply them.
  void add(const Route& route, double clocks) {
    if (route.kernel == nullptr || (tokens_ <= kMostNarrowTokens && route.sums_outside())) return;
    if (!best_ || clocks < clocks_) best_ = route, clocks_ = clocks;
  }
  const std::optional<Route>& best() const { return best_; }
  double clocks() const { return clocks_; }

 private:
  uint32_t tokens_;
  std::optional<Route> best_;
  double clocks_ = 0;
};

// Clocks of decoding a matrix once and of cuBLAS's product, roughly: bf16 is written at 1.9 TB/s, read at 3.6,
// multiplied at 650 TFLOP/s, and each of the kernels takes 2 to 3 microseconds to start and end (docs/gpu.md).
double decoding_clocks(const Grid& grid, uint32_t tokens) {
  constexpr double kClocksAMicrosecond = 1750;
  const double values = static_cast<double>(grid.rows) * static_cast<double>(grid.cols);
  const double decode = 2 * values / 1.9e6 + 2.5, read = 2 * values / 3.6e6, multiply = 2 * values * tokens / 650e6;
  return (decode + std::max(read, multiply) + 2) * kClocksAMicrosecond;
}

std::optional<Route> plan_route(const PackHeader& header, uint32_t tokens, uint32_t splits, uint32_t multiprocessors,
                                const Context& context) {
  const ContextOptions& options = context.options();
  DeviceLimits limits = context.device().limits;
  // Plans share units by 2^32 / blocks, and pairs of blocks: two at least.
  if (multiprocessors != 0) limits.multiprocessors = std::clamp(multiprocessors, 2u, limits.multiprocessors);
  const bool any = options.kernel == KernelChoice::kAuto;
  if (options.kernel == KernelChoice::kGeneric) {
    const auto plan = plan_generic(header, tokens, splits, limits);
    return plan ? std::optional(Route{*plan, kernel_of(*plan)}) : std::nullopt;
  }
  Candidates candidates(tokens);
  if (any || options.kernel == KernelChoice::kNarrow) {
    if (const auto plan = plan_linear(header, tokens, splits, limits, options.teams)) {
      const uint64_t sums = partial_sum_bytes(*plan);
      candidates.add({*plan, kernel_of(*plan), sums, partial_bytes(*plan) - sums}, clocks_of(*plan));
    }
    if (any && tokens <= kNarrowTokens && candidates.best()) return candidates.best();
  }
  if (any || options.kernel == KernelChoice::kStaged) {
    if (const auto plan = plan_staged(header, tokens, splits, limits, options.staged_strips)) {
      candidates.add({*plan, kernel_of(*plan), partial_sum_bytes(*plan), arrival_bytes(*plan)}, clocks_of(*plan));
    }
  }
  if ((any && tokens <= kMostWideTokens) || options.kernel == KernelChoice::kWide) {
    if (const auto plan = plan_wide(header, tokens, splits, limits, options.wide)) {
      candidates.add({*plan, kernel_of(*plan), partial_sum_bytes(*plan), arrival_bytes(*plan)}, clocks_of(*plan));
    }
  }
  if ((any && tokens >= kLeastAheadTokens) || options.kernel == KernelChoice::kAhead) {
    if (const auto plan = plan_ahead(header, tokens, splits, limits)) {
      candidates.add({*plan, kernel_of(*plan), 0, ahead_flag_words(*plan) * 4, ahead_scratch_bytes(*plan)},
                     clocks_of(*plan));
    }
  }
  if (any && tokens > kMostNarrowTokens && multiprocessors == 0 &&
      candidates.clocks() > decoding_clocks(header.grid, tokens))
    return std::nullopt;
  return candidates.best();
}

// Splits for products whose order is free: enough units to fill the GPU four times over, none shorter than 512 columns.
uint32_t free_splits(const Grid& grid, uint32_t multiprocessors) {
  uint32_t splits = 1;
  while (splits < 16 && grid.strips_a_matrix() * splits < 4 * uint64_t{multiprocessors} &&
         grid.cols / (splits + 1) >= 512)
    ++splits;
  return splits;
}

// Hopper's kernels run on Hopper alone; there GLYD_CUDA_KERNEL=generic leaves them out, for tests of the generic one.
KernelChoice kernel_choice(KernelChoice wanted, const DeviceInfo& device) {
  const char* const forced = std::getenv("GLYD_CUDA_KERNEL");
  const bool hopper = device.compute_major == 9 && device.compute_minor == 0;
  if (!hopper || (forced != nullptr && std::string_view(forced) == "generic")) return KernelChoice::kGeneric;
  return wanted;
}

// Whether this library has code for the current GPU.
bool has_code() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, generic_kernel(1)) == cudaSuccess;
}

}  // namespace

Result<std::unique_ptr<Context>> Context::create(const ContextOptions& options) {
  auto context = std::unique_ptr<Context>(new Context(options));
  GLYD_TRY(context->device_, read_device(options.device));
  const DeviceInfo& device = context->device_;
  const ScopedDevice scope(options.device);
  if (!has_code()) {
    cudaGetLastError();
    return unsupported(
        "GPU {} ({}) has compute capability {}.{}, for which this libglyd_cuda has no code: it needs 8.0 or newer, "
        "named by GLYD_CUDA_ARCHITECTURES in the build",
        options.device, device.name, device.compute_major, device.compute_minor);
  }
  context->options_.kernel = kernel_choice(options.kernel, device);
  GLYD_TRY(context->zeros_, DeviceBuffer::allocate(256));
  GLYD_CHECK(cuda_check(cudaMemset(context->zeros_.as<void>(), 0, 256), "cudaMemset"));
  if (!options.verdict_file.empty()) context->load_verdicts();
  return context;
}

Result<Cublas*> Context::cublas() {
  const std::lock_guard lock(cublas_mutex_);
  if (cublas_ == nullptr) {
    const ScopedDevice scope(options_.device);
    GLYD_TRY(cublas_, Cublas::create(options_.cublas));
  }
  return cublas_.get();
}

bool Context::find_verdict(const ProductKey& key, Verdict& verdict) const {
  const std::lock_guard lock(verdicts_mutex_);
  const auto found = verdicts_.find(key);
  if (found == verdicts_.end()) return false;
  verdict = found->second;
  return true;
}

void Context::store_verdict(const ProductKey& key, const Verdict& verdict) {
  const std::lock_guard lock(verdicts_mutex_);
  verdicts_[key] = unsaved_[key] = verdict;
}

Result<VerdictEnvironment> Context::environment() {
  GLYD_TRY(Cublas* const loaded, cublas());
  return VerdictEnvironment{device_.name,
                            device_.driver,
                            fmt::format("{} sums {}", GLYD_VERSION, kSumsRevision),
                            loaded->version(),
                            options_.cublas.workspace_bytes,
                            options_.cublas.reduced_precision};
}

void Context::load_verdicts() {
  const auto read = [this]() -> Result<Verdicts> {
    GLYD_TRY(const VerdictEnvironment here, environment());
    return read_verdicts(options_.verdict_file, here);
  }();
  const std::lock_guard lock(verdicts_mutex_);
  if (read) {
    verdicts_ = read.value();
    verdicts_text_ =
        fmt::format("{}: {} verdicts of this GPU, driver and cuBLAS", options_.verdict_file.string(), verdicts_.size());
  } else {
    verdicts_text_ = fmt::format("not read: {}", read.error().message);
  }
}

void Context::save_verdicts() {
  if (options_.verdict_file.empty()) return;
  const auto here = environment();
  const std::lock_guard lock(verdicts_mutex_);
  if (unsaved_.empty()) return;
  const Result<void> saved =
      here ? merge_verdicts(options_.verdict_file, here.value(), unsaved_) : Result<void>(here.error());
  if (saved) {
    verdicts_text_ = fmt::format("{}: {} verdicts added", options_.verdict_file.string(), unsaved_.size());
    unsaved_.clear();
  } else {
    verdicts_text_ = fmt::format("not written: {}", saved.error().message);
  }
}

std::string Context::verdicts_text() const {
  const std::lock_guard lock(verdicts_mutex_);
  return verdicts_text_;
}

Result<std::unique_ptr<DevicePack>> DevicePack::open(Context& context, ByteSpan header, uint64_t pack_bytes,
                                                     const void* device) {
  GLYD_TRY(const PackHeader read, read_pack_header(header, pack_bytes));
  if (reinterpret_cast<uintptr_t>(device) % kPackAlignment != 0) {
    return invalid_argument("pack: its device memory is not 128-byte aligned");
  }
  auto pack = std::unique_ptr<DevicePack>(new DevicePack(context, read));
  PackArrays& arrays = pack->arrays_;
  arrays.coding = read.layout == Layout::kFast    ? Coding::kFast
                  : read.layout == Layout::kSmall ? Coding::kSmall
                                                  : Coding::kRaw;
  arrays.grid = read.grid;
  arrays.transposed = read.transposed;
  arrays.base = read.base;
  arrays.slot_bytes = read.slot_bytes;
  arrays.min_bits = read.min_bits;
  for (uint32_t i = 0; i < kPackArrays; ++i) {
    arrays.arrays[i] = static_cast<const uint8_t*>(device) + read.array_offset(i);
    arrays.bytes[i] = read.array_bytes[i];
  }
  return pack;
}

bool DevicePack::may_route(uint64_t tokens) const {
  return tokens >= 1 &&
         tokens <= (context_.options().kernel == KernelChoice::kAuto ? kMostAheadTokens : kMostFusedTokens);
}

const Route* DevicePack::route_of_splits(uint64_t tokens, uint32_t splits, uint32_t multiprocessors) {
  if (!may_route(tokens)) return nullptr;
  const std::lock_guard lock(mutex_);
  const std::array<uint64_t, 3> key{tokens, splits, multiprocessors};
  if (const auto found = routes_.find(key); found != routes_.end()) return &found->second;
  const auto route = plan_route(header_, static_cast<uint32_t>(tokens), splits, multiprocessors, context_);
  if (!route || route->kernel == nullptr) return nullptr;
  if (route->arrival_bytes > kPartialBytes || route->scratch_bytes > most_outside_bytes() ||
      (route->sums_outside() && route->sum_bytes > most_outside_bytes())) {
    return nullptr;
  }
  const auto shared = static_cast<int>(context_.device().limits.shared_bytes);
  const ScopedDevice scope(context_.device().ordinal);
  if (cudaFuncSetAttribute(route->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared) != cudaSuccess)
    return nullptr;
  return &routes_.emplace(key, *route).first->second;
}

const Route* DevicePack::exact_route(uint64_t tokens, bool bias) {
  if (tokens < 1 || tokens > kMostFusedTokens || !may_fuse_exactly(header_, tokens)) return nullptr;
  std::atomic<const Route*>* const cached = tokens <= kMostNarrowTokens ? &exact_[2 * tokens + bias] : nullptr;
  if (cached != nullptr) {
    if (const Route* route = cached->load(std::memory_order_acquire)) return route;
  }
  Verdict verdict;
  if (!context_.find_verdict({header_.grid.rows, header_.grid.cols, tokens, bias}, verdict) || !verdict.exact)
    return nullptr;
  const Route* const route = route_of_splits(tokens, verdict.splits);
  if (cached != nullptr) cached->store(route, std::memory_order_release);
  return route;
}

const Route* DevicePack::free_route(uint64_t tokens) {
  if (tokens < 1 || tokens > kMostFusedTokens) return nullptr;
  if (const Route* route = exact_route(tokens, false)) return route;
  std::atomic<const Route*>* const cached = tokens <= kMostNarrowTokens ? &free_[tokens] : nullptr;
  if (cached != nullptr) {
    if (const Route* route = cached->load(std::memory_order_acquire)) return route;
  }
  const uint32_t splits =
      tokens <= kMostNarrowTokens ? free_splits(header_.grid, context_.device().limits.multiprocessors) : 1;
  const Route* route = route_of_splits(tokens, splits);
  if (route == nullptr && splits > 1) route = route_of_splits(tokens, 1);
  if (cached != nullptr) cached->store(route, std::memory_order_release);
  return route;
}

void DevicePack::refresh() {
  for (auto& route : exact_) route.store(nullptr, std::memory_order_release);
}

}  // namespace glyd::cuda
