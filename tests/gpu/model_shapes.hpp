// model_shapes.hpp - the matrices of public models, [outputs, inputs], and the numbers of tokens they are multiplied
// by.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

namespace glyd::test {

struct ModelShape {
  uint64_t rows, cols;
  bool bias;   // the model has one there
  bool quick;  // in the short run
};
struct ModelFamily {
  const char* name;
  std::vector<ModelShape> shapes;
};
// For GoogleTest, which would print the bytes.
inline void PrintTo(const ModelFamily& family, std::ostream* out) { *out << family.name; }

// Query, key and value, output, gate and up, down; merged ones where engines merge them. A shape that two families
// share stands in the first.
inline const std::vector<ModelFamily>& model_families() {
  static const std::vector<ModelFamily> families = {
      {"Llama3",
       {{4096, 4096, false, true},    // 8B: q, o
        {1024, 4096, false, true},    // k, v
        {6144, 4096, false, true},    // q, k, v merged
        {14336, 4096, false, false},  // gate, up
        {28672, 4096, false, true},   // both merged
        {4096, 14336, false, false},  // down
        {8192, 8192, false, false},   // 70B: q, o
        {1024, 8192, false, false},   // k, v
        {28672, 8192, false, false},  // gate, up
        {8192, 28672, false, false},  // down
        {2048, 2048, false, true},    // 3.2 1B: q, o
        {512, 2048, false, false}}},  // k, v
      {"Qwen25",
       {{896, 896, true, true},         // 0.5B: q
        {128, 896, true, false},        // k, v
        {4864, 896, false, false},      // gate, up
        {896, 4864, false, true},       // down
        {1536, 1536, true, false},      // 1.5B: q
        {256, 1536, true, true},        // k, v
        {8960, 1536, false, false},     // gate, up
        {1536, 8960, false, false},     // down
        {3584, 3584, true, false},      // 7B: q
        {512, 3584, true, false},       // k, v
        {18944, 3584, false, false},    // gate, up
        {3584, 18944, false, true},     // down
        {5120, 5120, true, false},      // 14B, 32B: q
        {13824, 5120, false, false},    // 14B: gate, up
        {5120, 27648, false, false},    // 32B: down
        {29568, 8192, false, false}}},  // 72B: gate, up
      {"Qwen3",
       {{2048, 1024, false, true},     // 0.6B: q
        {1024, 1024, false, false},    // k, v
        {1024, 2048, false, false},    // o
        {3072, 1024, false, false},    // gate, up
        {1024, 3072, false, true},     // down
        {6144, 2048, false, false},    // 1.7B: gate, up
        {2048, 6144, false, false},    // down
        {4096, 2560, false, false},    // 4B: q
        {2560, 9728, false, true},     // down
        {24576, 4096, false, false},   // 8B: gate and up merged
        {4096, 12288, false, true},    // down
        {17408, 5120, false, false},   // 14B: gate, up
        {10240, 5120, false, false},   // 32B: q, k, v merged
        {5120, 8192, false, true},     // o
        {51200, 5120, false, false},   // gate and up merged
        {5120, 25600, false, true}}},  // down
      {"Gemma",
       {{2304, 9216, false, true},      // 2 2B: down
        {2048, 2304, false, false},     // q
        {3584, 14336, false, false},    // 2 9B: down
        {4096, 3584, false, false},     // q
        {256, 1152, false, true},       // 3 1B: k, v
        {6912, 1152, false, false},     // gate, up
        {1152, 6912, false, false},     // down
        {2560, 10240, false, true},     // 3 4B: down
        {15360, 3840, false, false},    // 3 12B: gate, up
        {3840, 15360, false, false},    // down
        {4096, 5376, false, true},      // 3 27B: q
        {21504, 5376, false, false}}},  // gate, up
      {"MistralAndPhi",
       {{4096, 5120, false, false},     // Nemo: q
        {14336, 5120, false, false},    // gate, up
        {32768, 5120, false, false},    // Small: gate, up
        {5120, 32768, false, false},    // down
        {9216, 3072, false, true},      // Phi-3 mini: q, k, v merged
        {16384, 3072, false, false},    // gate and up merged
        {3072, 8192, false, true},      // down
        {7680, 5120, false, true},      // Phi-4: q, k, v merged
        {35840, 5120, false, false},    // gate and up merged
        {5120, 17920, false, false}}},  // down
  };
  return families;
}

inline std::vector<uint64_t> model_tokens(bool quick) {
  if (quick) return {1, 2, 5, 8, 9, 16, 17, 32, 64, 128, 200, 512, 2048};
  return {1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  11,  12,  13,   14,
          15, 16, 17, 24, 32, 48, 64, 96, 128, 200, 256, 500, 1000, 2048};
}

}  // namespace glyd::test
