// cpu.hpp - which instruction sets run here. Kernels have a twin for each; dispatch asks `cpu_isa()`.
#pragma once

namespace glyd {

enum class Isa { kScalar = 0, kAvx2 = 1, kAvx512 = 2, kAmx = 3 };

// The best one that the CPU and this build have: AVX2 means avx2 + fma + bmi2; AVX-512 means f, bw, vl, dq, vbmi and
// bf16 besides; AMX means tile and bf16 besides, and that Linux lets this process use the tiles (asked for once, here).
// GLYD_CPU=scalar|avx2|avx512|amx in the environment (read once) lowers it; a lower one does not ask for the tiles.
Isa cpu_isa();
// What the CPU itself has, whatever GLYD_CPU says.
Isa cpu_isa_detected();
const char* isa_name(Isa isa);

// The one of a table's three twins that cpu_isa() says. (Only products have a fourth, for AMX.)
template <typename Table>
const Table& choose_by_isa(const Table& scalar, const Table& avx2, const Table& avx512) {
  switch (cpu_isa()) {
    case Isa::kAmx:
    case Isa::kAvx512:
      return avx512;
    case Isa::kAvx2:
      return avx2;
    case Isa::kScalar:
      break;
  }
  return scalar;
}

// Tests only: the rest of the process uses `isa` (which the CPU must have) until the object goes.
class ScopedIsa {
 public:
  explicit ScopedIsa(Isa isa);
  ~ScopedIsa();
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;

 private:
  int previous_;
};

}  // namespace glyd
