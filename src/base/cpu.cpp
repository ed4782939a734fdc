#include "base/cpu.hpp"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace glyd {
namespace {

std::atomic<int> override_isa{-1};

Isa detect() {
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

Isa from_environment() {
  const char* name = std::getenv("GLYD_CPU");
  const Isa best = cpu_isa_detected();
  if (name == nullptr) return best;
  const Isa asked = std::string_view(name) == "scalar" ? Isa::kScalar
                    : std::string_view(name) == "avx2" ? Isa::kAvx2
                                                       : Isa::kAvx512;
  return asked < best ? asked : best;
}

}  // namespace

Isa cpu_isa_detected() {
  static const Isa isa = detect();
  return isa;
}

Isa cpu_isa() {
  static const Isa isa = from_environment();
  const int forced = override_isa.load(std::memory_order_relaxed);
  return forced >= 0 ? static_cast<Isa>(forced) : isa;
}

const char* isa_name(Isa isa) { return isa == Isa::kAvx512 ? "avx512" : isa == Isa::kAvx2 ? "avx2" : "scalar"; }

ScopedIsa::ScopedIsa(Isa isa) : previous_(override_isa.exchange(static_cast<int>(isa))) {}
ScopedIsa::~ScopedIsa() { override_isa.store(previous_); }

}  // namespace glyd
