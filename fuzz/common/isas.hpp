// isas.hpp - the instruction sets that this machine can run, scalar first.
#pragma once

#include <vector>

#include "base/cpu.hpp"

namespace glyd::fuzz {

inline const std::vector<Isa>& isas() {
  static const std::vector<Isa> all = [] {
    std::vector<Isa> found;
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
      if (isa <= cpu_isa_detected()) found.push_back(isa);
    }
    return found;
  }();
  return all;
}

}  // namespace glyd::fuzz
