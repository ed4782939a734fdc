// Products and matrices of stacks through glyd/cuda.h: one matrix, groups of packs, experts.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>

#include "glyd/cuda.h"
#include "unit/weights/matrices.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

class LinearCapiTest : public testing::Test {
 protected:
  struct Pack {
    Grid grid;
    Values values;
    glyd_cuda_pack* handle = nullptr;
  };

  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
    ASSERT_EQ(glyd_cuda_create(nullptr, &context_), GLYD_OK) << glyd_cuda_last_error();
  }
  void TearDown() override {
    for (const Pack& pack : packs_) glyd_cuda_close(pack.handle);
    glyd_cuda_destroy(context_);
    for (void* p : memory_) cudaFree(p);
  }

  template <typename T>
  T* upload(const T* data, uint64_t count) {
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, count * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(p, data, count * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
    memory_.push_back(p);
    return static_cast<T*>(p);
  }
  uint16_t* upload(const Values& values) { return upload(values.data(), values.size()); }
  static Values read(const uint16_t* device, uint64_t count) {
    Values out(count);
    EXPECT_EQ(cudaMemcpy(out.data(), device, count * 2, cudaMemcpyDeviceToHost), cudaSuccess);
    return out;
  }
  const Pack& pack(const Grid& grid, bool transposed, Layout layout) {
    Pack made{grid, make_values(matrix_kind("Gaussian"), grid.stack * grid.rows * grid.cols, grid.cols, packs_.size())};
    auto packed = pack_tensor(made.values, grid, transposed, layout, 0);
    EXPECT_TRUE(packed);
    const AlignedBuffer host = std::move(packed).value();
    EXPECT_EQ(glyd_cuda_open(context_, host.data(), host.size(), upload(host.data(), host.size()), &made.handle),
              GLYD_OK);
    return packs_.emplace_back(std::move(made));
  }
  void* workspace(uint64_t bytes) {
    void* const p = upload(Values(bytes / 2));
    EXPECT_EQ(glyd_cuda_init_workspace(context_, p, bytes, nullptr), GLYD_OK);
    return p;
  }

  glyd_cuda_context* context_ = nullptr;
  std::vector<Pack> packs_;
  std::vector<void*> memory_;
};

TEST_F(LinearCapiTest, UnpackMatrix) {
  const Grid grid{3, 70, 200};
  for (const Layout layout : {Layout::kFast, Layout::kSmall, Layout::kRaw}) {
    for (const bool transposed : {false, true}) {
      const Pack& packed = pack(grid, transposed, layout);
      uint16_t* const out = upload(Values(grid.rows * grid.cols));
      for (uint64_t m = 0; m < grid.stack; ++m) {
        ASSERT_EQ(glyd_cuda_unpack_matrix(packed.handle, m, out, nullptr), GLYD_OK) << glyd_cuda_last_error();
        const Values got = read(out, grid.rows * grid.cols);
        const uint16_t* const matrix = packed.values.data() + m * grid.rows * grid.cols;
        for (uint64_t r = 0; r < grid.rows; ++r) {
          for (uint64_t c = 0; c < grid.cols; ++c) {
            ASSERT_EQ(got[r * grid.cols + c], matrix[transposed ? c * grid.rows + r : r * grid.cols + c])
                << m << " " << r << " " << c << " layout " << static_cast<int>(layout) << transposed;
          }
        }
      }
      EXPECT_EQ(glyd_cuda_unpack_matrix(packed.handle, 3, out, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
      EXPECT_EQ(glyd_cuda_unpack_matrix(packed.handle, 0, nullptr, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
    }
  }
  EXPECT_EQ(glyd_cuda_unpack_matrix(nullptr, 0, nullptr, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
}

// A share of the multiprocessors changes no bit, however small it is.
TEST_F(LinearCapiTest, AShareOfTheMultiprocessors) {
  const Grid grid{1, 2048, 4096};
  const Pack& packed = pack(grid, false, Layout::kFast);
  uint64_t bytes = 0;
  ASSERT_EQ(glyd_cuda_linear_workspace(packed.handle, &bytes, nullptr), GLYD_OK);
  void* const room = workspace(bytes);
  for (const uint64_t tokens : {1, 8, 16, 24, 64, 100, 200}) {
    ASSERT_EQ(glyd_cuda_prepare(packed.handle, &tokens, 1, 0), GLYD_OK) << glyd_cuda_last_error();
    glyd_cuda_linear_call call{};
    call.struct_size = sizeof call;
    call.x = upload(make_values(matrix_kind("Gaussian"), tokens * grid.cols, grid.cols, tokens));
    call.tokens = tokens, call.x_stride = grid.cols;
    call.y = upload(Values(tokens * grid.rows));
    call.y_stride = grid.rows;
    call.workspace = room, call.workspace_bytes = bytes;
    ASSERT_EQ(glyd_cuda_linear(packed.handle, &call), GLYD_OK) << glyd_cuda_last_error();
    const Values expected = read(call.y, tokens * grid.rows);
    for (const uint32_t share : {1u, 2u, 22u, 131u, 1000u}) {
      call.multiprocessors = share;
      ASSERT_EQ(cudaMemset(call.y, 0, tokens * grid.rows * 2), cudaSuccess);
      ASSERT_EQ(glyd_cuda_linear(packed.handle, &call), GLYD_OK) << glyd_cuda_last_error();
      EXPECT_EQ(read(call.y, tokens * grid.rows), expected) << tokens << " tokens, " << share << " multiprocessors";
    }
  }
}

// Query, key and value of one input, of other sizes, one without a bias and one in another layout.
TEST_F(LinearCapiTest, AGroupIsItsMembers) {
  const uint64_t tokens = 5, cols = 1024;
  packs_.reserve(3);
  pack({1, 2048, cols}, false, Layout::kFast);
  pack({2, 512, cols}, false, Layout::kFast);
  pack({1, 512, cols}, true, Layout::kSmall);
  const uint16_t* const x = upload(make_values(matrix_kind("Gaussian"), tokens * cols, cols, 9));
  uint64_t bytes = 0;
  ASSERT_EQ(glyd_cuda_linear_workspace(packs_[0].handle, &bytes, nullptr), GLYD_OK);
  void* const room = workspace(bytes);
  glyd_cuda_linear_call calls[3]{};
  glyd_cuda_pack* handles[3]{};
  for (size_t i = 0; i < 3; ++i) {
    const uint64_t rows = packs_[i].grid.rows;
    handles[i] = packs_[i].handle;
    calls[i].struct_size = sizeof calls[i];
    calls[i].matrix = packs_[i].grid.stack - 1;
    calls[i].x = x, calls[i].tokens = tokens, calls[i].x_stride = cols;
    calls[i].bias = i == 1 ? nullptr : upload(make_values(matrix_kind("Gaussian"), rows, rows, i));
    calls[i].y = upload(Values(tokens * rows)), calls[i].y_stride = rows;
    calls[i].workspace = room, calls[i].workspace_bytes = bytes;
    ASSERT_EQ(glyd_cuda_prepare(handles[i], &tokens, 1, i != 1), GLYD_OK) << glyd_cuda_last_error();
  }
  Values alone[3];
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(glyd_cuda_linear(handles[i], &calls[i]), GLYD_OK) << glyd_cuda_last_error();
    alone[i] = read(calls[i].y, tokens * packs_[i].grid.rows);
  }
  for (const uint32_t early : {0u, 1u}) {
    for (auto& call : calls) {
      call.early_launch = early;
      call.y = upload(Values(tokens * call.y_stride));
    }
    ASSERT_EQ(glyd_cuda_linear_group(handles, calls, 3), GLYD_OK) << glyd_cuda_last_error();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(read(calls[i].y, tokens * packs_[i].grid.rows), alone[i]) << i;
  }
  // A wrong member is found before the first is enqueued.
  calls[0].y = upload(Values(tokens * calls[0].y_stride, 0x1234));
  calls[2].matrix = 1;
  EXPECT_EQ(glyd_cuda_linear_group(handles, calls, 3), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(read(calls[0].y, 1)[0], 0x1234);
  calls[2].matrix = 0, calls[2].struct_size = 64;
  EXPECT_EQ(glyd_cuda_linear_group(handles, calls, 3), GLYD_ERROR_INVALID_ARGUMENT);
  handles[1] = nullptr;
  EXPECT_EQ(glyd_cuda_linear_group(handles, calls, 3), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_linear_group(nullptr, calls, 3), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_linear_group(nullptr, nullptr, 0), GLYD_OK);
}

TEST_F(LinearCapiTest, Experts) {
  const Grid grid{3, 512, 1024};
  const uint64_t tokens = 9;
  const Pack& packed = pack(grid, false, Layout::kFast);
  const uint16_t* const x = upload(make_values(matrix_kind("Gaussian"), tokens * grid.cols, grid.cols, 9));
  const int32_t ends[] = {4, 4, 9};
  glyd_cuda_experts_call call{};
  call.struct_size = sizeof call;
  call.x = x, call.tokens = tokens, call.x_stride = grid.cols;
  call.ends = upload(ends, 3), call.most_tokens = 5;
  call.y = upload(Values(tokens * grid.rows)), call.y_stride = grid.rows;
  EXPECT_EQ(glyd_cuda_linear_experts(packed.handle, &call), GLYD_ERROR_UNSUPPORTED);
  EXPECT_NE(std::strstr(glyd_cuda_last_error(), "glyd_cuda_prepare"), nullptr) << glyd_cuda_last_error();
  const uint64_t counts[] = {1, 2, 3, 4, 5};
  ASSERT_EQ(glyd_cuda_prepare(packed.handle, counts, 5, 0), GLYD_OK) << glyd_cuda_last_error();
  ASSERT_EQ(glyd_cuda_linear_experts(packed.handle, &call), GLYD_OK) << glyd_cuda_last_error();
  const Values y = read(call.y, tokens * grid.rows);
  uint64_t bytes = 0;
  ASSERT_EQ(glyd_cuda_linear_workspace(packed.handle, &bytes, nullptr), GLYD_OK);
  glyd_cuda_linear_call one{};
  one.struct_size = sizeof one;
  one.x_stride = grid.cols, one.y_stride = grid.rows;
  one.y = upload(Values(tokens * grid.rows));
  one.workspace = workspace(bytes), one.workspace_bytes = bytes;
  uint16_t* const all = one.y;
  one.x = x, one.tokens = 4;
  ASSERT_EQ(glyd_cuda_linear(packed.handle, &one), GLYD_OK);
  one.matrix = 2, one.x = x + 4 * grid.cols, one.y = all + 4 * grid.rows, one.tokens = 5;
  ASSERT_EQ(glyd_cuda_linear(packed.handle, &one), GLYD_OK);
  EXPECT_EQ(y, read(all, tokens * grid.rows));
  EXPECT_EQ(glyd_cuda_linear_experts(nullptr, &call), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_linear_experts(packed.handle, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace glyd::test
