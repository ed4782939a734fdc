#include "base/cpu.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace glyd {
namespace {

std::atomic<int> override_isa{-1};

constexpr const char* kNames[] = {"scalar", "avx2", "avx512", "amx"};

Isa detect_vectors() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bf16");
  if (avx512) return Isa::kAvx512;
  if (avx2) return Isa::kAvx2;
#endif
  return Isa::kScalar;
}

// Whether the CPU has the matrix units, the system saves their state, and lets this process use them: Linux wants to be
// asked once a process, since signal frames grow by 8 KiB.
bool ask_for_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr uint32_t kBf16 = 1u << 22, kTile = 1u << 24;  // CPUID 7.0, edx
  constexpr uint64_t kStateBits = 3u << 17;               // XCR0: TILECFG, TILEDATA
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTile) == 0) return false;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if (((uint64_t{high} << 32 | low) & kStateBits) != kStateBits) return false;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

Isa from_environment() {
  const char* name = std::getenv("GLYD_CPU");
  for (const Isa lower : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (name != nullptr && std::string_view(name) == isa_name(lower)) return std::min(lower, detect_vectors());
  }
  return cpu_isa_detected();
}

}  // namespace

Isa cpu_isa_detected() {
  static const Isa isa = [] {
    const Isa vectors = detect_vectors();
    return vectors == Isa::kAvx512 && ask_for_tiles() ? Isa::kAmx : vectors;
  }();
  return isa;
}

Isa cpu_isa() {
  static const Isa isa = from_environment();
  const int forced = override_isa.load(std::memory_order_relaxed);
  return forced >= 0 ? static_cast<Isa>(forced) : isa;
}

const char* isa_name(Isa isa) { return kNames[static_cast<int>(isa)]; }

ScopedIsa::ScopedIsa(Isa isa) : previous_(override_isa.exchange(static_cast<int>(isa))) {}
ScopedIsa::~ScopedIsa() { override_isa.store(previous_); }

}  // namespace glyd
