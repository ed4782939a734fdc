// Packing on the GPU: the CPU packer's bytes, for every kind of matrix and odd shapes.
#include "gpu_support.hpp"
#include "pack/pack_fast.hpp"

namespace glyd::test {
namespace {

class PackTest : public GpuTest {
 protected:
  static Result<std::optional<PackHeader>> pack(const Values& values, const Grid& grid, bool transposed,
                                                std::vector<uint8_t>& bytes) {
    const auto source = upload(values);
    const uint64_t capacity = pack_bound(grid), scratch_bytes = cuda::pack_scratch_bytes(grid);
    const auto packed = poisoned(capacity), scratch = poisoned(scratch_bytes);
    cuda::PackCall call{source.as<uint16_t>(), grid,          transposed, packed.as<uint8_t>(), capacity,
                        scratch.as<void>(),    scratch_bytes, nullptr};
    GLYD_TRY(const auto header, cuda::pack_fast(context(), call));
    bytes.resize(header ? header->pack_bytes : 0);
    take(cudaMemcpy(bytes.data(), packed.as<void>(), bytes.size(), cudaMemcpyDeviceToHost));
    return header;
  }
};

TEST_F(PackTest, GivesTheCpuPackersBytes) {
  const Grid grids[] = {{1, 16, 128},  {1, 33, 300}, {2, 17, 16},  {3, 5, 2049},  {1, 64, 112},
                        {1, 256, 256}, {1, 1, 1},    {4, 48, 136}, {1, 1000, 72}, {1, 130, 4096}};
  uint32_t same = 0;
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const Grid& grid : grids) {
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}x{}x{} {}", kind.name, grid.stack, grid.rows, grid.cols, transposed));
        const Values values = make_values(kind.name, grid, 3);
        const AlignedBuffer expected = take(pack_tensor(values, grid, transposed, Layout::kFast, 0));
        std::vector<uint8_t> bytes;
        const auto header = take(pack(values, grid, transposed, bytes));
        ASSERT_EQ(header.has_value(), take(open_pack(expected.bytes())).layout == Layout::kFast);
        if (!header) continue;
        ASSERT_EQ(bytes.size(), expected.size());
        ASSERT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
        ++same;
      }
    }
  }
  EXPECT_GT(same, 80u);  // the rest are kinds and sizes that `fast` does not pay for
}

TEST_F(PackTest, ShortBuffersAreRefused) {
  const Grid grid{1, 64, 256};
  const auto source = upload(make_values("Gaussian", grid, 1));
  const auto memory = poisoned(1 << 20);
  cuda::PackCall call{source.as<uint16_t>(),
                      grid,
                      false,
                      memory.as<uint8_t>(),
                      256,
                      memory.as<uint8_t>() + (1 << 19),
                      1 << 19,
                      nullptr};
  EXPECT_EQ(cuda::pack_fast(context(), call).error().status, GLYD_ERROR_BUFFER_TOO_SMALL);
  call.pack_capacity = 1 << 19, call.scratch_bytes = 100;
  EXPECT_EQ(cuda::pack_fast(context(), call).error().status, GLYD_ERROR_BUFFER_TOO_SMALL);
}

}  // namespace
}  // namespace glyd::test
