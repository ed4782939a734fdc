// Every instruction set writes the scalar packer's bytes and decodes to the scalar decoder's bits, whatever the bytes
// are.
#include <gtest/gtest.h>

#include "base/cpu.hpp"
#include "unit/weights/matrices.hpp"
#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

constexpr Grid kGrids[] = {{1, 64, 512}, {1, 33, 143}, {2, 17, 300}, {1, 16, 16}, {1, 15, 97}, {1, 100, 31}};

AlignedBuffer pack_with(Isa isa, const Values& values, const Grid& grid, bool transposed, Layout layout) {
  const ScopedIsa scoped(isa);
  auto pack = pack_tensor(values, grid, transposed, layout, 1);
  EXPECT_TRUE(pack) << pack.error().message;
  return std::move(pack).value();
}

void expect_equal_packs(Isa isa) {
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const Grid& grid : kGrids) {
      const Values values = make_values(kind, grid.stack * grid.rows * grid.cols, grid.cols);
      for (const Layout layout : {Layout::kFast, Layout::kSmall}) {
        for (const bool transposed : {false, true}) {
          SCOPED_TRACE(testing::Message() << kind.name << " " << grid.rows << "x" << grid.cols << " "
                                          << layout_ops(layout).name << (transposed ? " transposed" : ""));
          const AlignedBuffer wanted = pack_with(Isa::kScalar, values, grid, transposed, layout);
          const AlignedBuffer made = pack_with(isa, values, grid, transposed, layout);
          ASSERT_EQ(made.size(), wanted.size());
          EXPECT_EQ(std::memcmp(made.data(), wanted.data(), made.size()), 0);
          const ScopedIsa scoped(isa);
          Values decoded(values.size());
          const auto result = decode_tensor_checked(wanted.bytes(), 1, decoded);
          ASSERT_TRUE(result) << result.error().message;
          EXPECT_TRUE(decoded == values);
        }
      }
    }
  }
}

// What a decoder makes of damaged bytes: the same status, and the same values where it has any.
void expect_equal_on_damage(Isa isa) {
  Random random(7);
  const Grid grid{1, 40, 600};
  const Values values = make_values(matrix_kind("OutlierBlocks"), 40 * 600, 600);
  for (const Layout layout : {Layout::kFast, Layout::kSmall}) {
    AlignedBuffer pack = pack_with(Isa::kScalar, values, grid, false, layout);
    for (int i = 0; i < 300; ++i) {
      const size_t at = kPackHeaderBytes + random() % (pack.size() - kPackHeaderBytes);
      const uint8_t kept = pack.data()[at];
      pack.data()[at] = static_cast<uint8_t>(random());
      Values wanted(values.size(), 1), made(values.size(), 1);
      Status wanted_status = GLYD_OK, made_status = GLYD_OK;
      {
        const ScopedIsa scoped(Isa::kScalar);
        if (auto result = decode_tensor(pack.bytes(), 1, wanted); !result) wanted_status = result.error().status;
      }
      {
        const ScopedIsa scoped(isa);
        if (auto result = decode_tensor(pack.bytes(), 1, made); !result) made_status = result.error().status;
      }
      EXPECT_EQ(made_status, wanted_status) << layout_ops(layout).name << " byte " << at;
      EXPECT_TRUE(wanted_status != GLYD_OK || made == wanted) << layout_ops(layout).name << " byte " << at;
      pack.data()[at] = kept;
    }
  }
}

#define GLYD_SKIP_WITHOUT(isa, name) \
  if (cpu_isa_detected() < isa) GTEST_SKIP() << "this CPU has no " name ": its kernels were not run"

TEST(KernelsAvx2, PackAndDecodeAsScalar) {
  GLYD_SKIP_WITHOUT(Isa::kAvx2, "AVX2");
  expect_equal_packs(Isa::kAvx2);
}
TEST(KernelsAvx2, DamagedPacksAsScalar) {
  GLYD_SKIP_WITHOUT(Isa::kAvx2, "AVX2");
  expect_equal_on_damage(Isa::kAvx2);
}
TEST(KernelsAvx512, PackAndDecodeAsScalar) {
  GLYD_SKIP_WITHOUT(Isa::kAvx512, "AVX-512");
  expect_equal_packs(Isa::kAvx512);
}
TEST(KernelsAvx512, DamagedPacksAsScalar) {
  GLYD_SKIP_WITHOUT(Isa::kAvx512, "AVX-512");
  expect_equal_on_damage(Isa::kAvx512);
}

}  // namespace
}  // namespace glyd::test
