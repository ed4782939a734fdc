// Decoding on the GPU: every bit of every kind of matrix in every layout, odd shapes, rows, and packs that lie.
#include "unpack/unpack.hpp"

#include <filesystem>
#include <fstream>

#include "gpu_support.hpp"

namespace glyd::test {
namespace {

const Grid kGrids[] = {{1, 1, 1},    {1, 16, 128},  {1, 33, 300}, {2, 17, 16},  {3, 5, 2049},
                       {1, 64, 112}, {1, 256, 256}, {1, 7, 8192}, {4, 48, 136}, {1, 1000, 72}};

class UnpackTest : public GpuTest {
 protected:
  static uint32_t multiprocessors() { return context().device().limits.multiprocessors; }

  static Values unpack(const cuda::DevicePack& pack) {
    const uint64_t count = pack.header().values();
    const auto out = poisoned(count * 2);
    take(cuda::launch_unpack(pack.arrays(), out.as<uint16_t>(), multiprocessors(), nullptr));
    return download(out, count);
  }
};

TEST_F(UnpackTest, GivesTheSourcesBits) {
  for (const Layout layout : {Layout::kFast, Layout::kSmall, Layout::kRaw}) {
    for (const MatrixKind& kind : matrix_kinds()) {
      for (const Grid& grid : kGrids) {
        for (const bool transposed : {false, true}) {
          SCOPED_TRACE(fmt::format("{} {} {}x{}x{} {}", static_cast<int>(layout), kind.name, grid.stack, grid.rows,
                                   grid.cols, transposed));
          const Values values = make_values(kind.name, grid, 3);
          const auto pack = pack_on_gpu(context(), values, grid, transposed, layout);
          ASSERT_EQ(unpack(*pack.pack), values);
        }
      }
    }
  }
}

TEST_F(UnpackTest, OneMatrixOfAStackIsRowsByColumns) {
  const Grid grid{3, 40, 200};
  const Values values = make_values("Gaussian", grid, 5);
  for (const Layout layout : {Layout::kFast, Layout::kSmall, Layout::kRaw}) {
    for (const bool transposed : {false, true}) {
      const auto pack = pack_on_gpu(context(), values, grid, transposed, layout);
      for (uint64_t matrix = 0; matrix < grid.stack; ++matrix) {
        Values expected(grid.rows * grid.cols);
        take(decode_block(pack.host.bytes(), {matrix, 0, grid.rows, 0, grid.cols}, 1, expected.data(), grid.cols));
        const auto out = poisoned(expected.size() * 2);
        take(cuda::launch_unpack_matrix(pack.pack->arrays(), matrix, out.as<uint16_t>(), multiprocessors(), nullptr));
        ASSERT_EQ(download(out, expected.size()), expected);
      }
    }
  }
}

TEST_F(UnpackTest, RowsAreLookedUpAndOthersAreZero) {
  const Grid grid{1, 1003, 520};
  const Values values = make_values("Gaussian", grid, 6);
  const std::vector<int64_t> indices = {0, 1002, 17, 17, 500, -1, 1003, 16, 15};
  const auto device_indices = upload(indices.data(), indices.size() * 8);
  for (const Layout layout : {Layout::kFast, Layout::kSmall, Layout::kRaw}) {
    const auto pack = pack_on_gpu(context(), values, grid, false, layout);
    const auto out = poisoned(indices.size() * grid.cols * 2);
    take(cuda::launch_rows(pack.pack->arrays(), device_indices.as<int64_t>(), indices.size(), out.as<uint16_t>(),
                           multiprocessors(), nullptr));
    const Values rows = download(out, indices.size() * grid.cols);
    for (uint64_t i = 0; i < indices.size(); ++i) {
      const bool there = indices[i] >= 0 && indices[i] < 1003;
      for (uint64_t c = 0; c < grid.cols; ++c) {
        ASSERT_EQ(rows[i * grid.cols + c], there ? values[static_cast<uint64_t>(indices[i]) * grid.cols + c] : 0);
      }
    }
  }
}

// Packs whose headers pass but whose arrays break the rules: the kernels may give any values, but stay inside
// (compute-sanitizer sees).
TEST_F(UnpackTest, PacksThatLieStayInBounds) {
  uint32_t decoded = 0;
  for (const char* folder : {"invalid", "hostile"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(GLYD_VECTORS_DIR) / folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      if (bytes.size() < kPackHeaderBytes ||
          !read_pack_header({reinterpret_cast<const uint8_t*>(bytes.data()), kPackHeaderBytes}, bytes.size())) {
        continue;
      }
      AlignedBuffer host(bytes.size());
      std::memcpy(host.data(), bytes.data(), bytes.size());
      const auto pack = upload_pack(context(), std::move(host));
      if (pack.pack->header().values() > uint64_t{1} << 28) continue;
      unpack(*pack.pack);
      ++decoded;
    }
  }
  EXPECT_GT(decoded, 0u);
}

// Random damage to arrays, for the same reason.
TEST_F(UnpackTest, DamagedArraysStayInBounds) {
  const Grid grid{1, 100, 700};
  Random random(11);
  for (const Layout layout : {Layout::kFast, Layout::kSmall}) {
    const AlignedBuffer sound = take(pack_tensor(make_values("HeavyTails", grid, 8), grid, false, layout, 1));
    for (int round = 0; round < 200; ++round) {
      AlignedBuffer damaged(sound.size());
      std::memcpy(damaged.data(), sound.data(), sound.size());
      for (uint32_t i = 0; i < 1 + sound.size() / 50; ++i) {
        damaged.data()[kPackHeaderBytes + random() % (sound.size() - kPackHeaderBytes)] =
            static_cast<uint8_t>(random());
      }
      const auto pack = upload_pack(context(), std::move(damaged));
      unpack(*pack.pack);
    }
  }
}

}  // namespace
}  // namespace glyd::test
