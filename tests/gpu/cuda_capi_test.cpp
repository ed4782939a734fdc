// glyd/cuda.h as a C caller sees it.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "glyd/cuda.h"
#include "unit/weights/matrices.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

TEST(CudaCapi, NamesItself) {
  EXPECT_EQ(glyd_cuda_abi_version(), static_cast<uint32_t>(GLYD_CUDA_ABI_VERSION));
  EXPECT_STREQ(glyd_cuda_status_text(GLYD_OK), "ok");
  EXPECT_NE(glyd_cuda_last_error(), nullptr);
}

TEST(CudaCapi, NullsAreRefused) {
  EXPECT_EQ(glyd_cuda_create(nullptr, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_open(nullptr, nullptr, 0, nullptr, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_unpack(nullptr, nullptr, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_linear(nullptr, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(glyd_cuda_verdict_file_text(nullptr), "");
  EXPECT_STRNE(glyd_cuda_last_error(), "");
}

// Without a GPU that this build serves, creating a context says so.
TEST(CudaCapi, MissingGpuIsUnsupported) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) GTEST_SKIP() << "there is a GPU";
  glyd_cuda_context* context = nullptr;
  EXPECT_EQ(glyd_cuda_create(nullptr, &context), GLYD_ERROR_UNSUPPORTED) << glyd_cuda_last_error();
  EXPECT_EQ(context, nullptr);
}

class CudaCapiTest : public testing::Test {
 protected:
  static constexpr uint64_t kRows = 512, kCols = 1024, kTokens = 8;

  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
    values_ = make_values(matrix_kind("Gaussian"), kRows * kCols, kCols, 1);
    auto packed = pack_tensor(values_, {1, kRows, kCols}, false, Layout::kFast, 0);
    ASSERT_TRUE(packed);
    host_ = std::move(packed).value();
    ASSERT_EQ(glyd_cuda_create(nullptr, &context_), GLYD_OK) << glyd_cuda_last_error();
    device_ = allocate(host_.size());
    ASSERT_EQ(cudaMemcpy(device_, host_.data(), host_.size(), cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(glyd_cuda_open(context_, host_.data(), host_.size(), device_, &pack_), GLYD_OK);
  }
  void TearDown() override {
    glyd_cuda_close(pack_);
    glyd_cuda_destroy(context_);
    for (void* p : memory_) cudaFree(p);
  }
  void* allocate(uint64_t bytes) {
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
    memory_.push_back(p);
    return p;
  }
  Values read(const void* device, uint64_t count) {
    Values out(count);
    EXPECT_EQ(cudaMemcpy(out.data(), device, count * 2, cudaMemcpyDeviceToHost), cudaSuccess);
    return out;
  }

  Values values_;
  AlignedBuffer host_;
  void* device_ = nullptr;
  glyd_cuda_context* context_ = nullptr;
  glyd_cuda_pack* pack_ = nullptr;
  std::vector<void*> memory_;
};

TEST_F(CudaCapiTest, UnpackAndRows) {
  auto* out = static_cast<uint16_t*>(allocate(kRows * kCols * 2));
  ASSERT_EQ(glyd_cuda_unpack(pack_, out, nullptr), GLYD_OK);
  EXPECT_EQ(read(out, kRows * kCols), values_);
  const int64_t index = 77;
  auto* indices = static_cast<int64_t*>(allocate(8));
  ASSERT_EQ(cudaMemcpy(indices, &index, 8, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(glyd_cuda_rows(pack_, indices, 1, out, nullptr), GLYD_OK);
  EXPECT_EQ(read(out, kCols), Values(values_.begin() + 77 * kCols, values_.begin() + 78 * kCols));
}

TEST_F(CudaCapiTest, LinearIsTheSameOnEveryExactRoute) {
  uint64_t bytes = 0, fused_bytes = 0;
  ASSERT_EQ(glyd_cuda_linear_workspace(pack_, &bytes, &fused_bytes), GLYD_OK);
  EXPECT_LE(fused_bytes, uint64_t{4} << 20);
  void* workspace = allocate(bytes);
  ASSERT_EQ(glyd_cuda_init_workspace(context_, workspace, bytes, nullptr), GLYD_OK);
  const Values x = make_values(matrix_kind("Gaussian"), kTokens * kCols, kCols, 2);
  auto* device_x = static_cast<uint16_t*>(allocate(x.size() * 2));
  ASSERT_EQ(cudaMemcpy(device_x, x.data(), x.size() * 2, cudaMemcpyHostToDevice), cudaSuccess);
  glyd_cuda_linear_call call{};
  call.struct_size = sizeof call;
  call.x = device_x, call.tokens = kTokens, call.x_stride = kCols;
  call.y = static_cast<uint16_t*>(allocate(kTokens * kRows * 2)), call.y_stride = kRows;
  call.workspace = workspace, call.workspace_bytes = bytes;
  glyd_cuda_route_info route{};
  route.struct_size = sizeof route;
  ASSERT_EQ(glyd_cuda_route(pack_, kTokens, 0, 0, &route), GLYD_OK);
  EXPECT_EQ(route.kind, GLYD_CUDA_ROUTE_DECODE) << route.reason;
  ASSERT_EQ(glyd_cuda_linear(pack_, &call), GLYD_OK) << glyd_cuda_last_error();
  const Values decoded = read(call.y, kTokens * kRows);
  ASSERT_EQ(glyd_cuda_prepare(pack_, &kTokens, 1, 0), GLYD_OK) << glyd_cuda_last_error();
  ASSERT_EQ(glyd_cuda_route(pack_, kTokens, 0, 0, &route), GLYD_OK);
  EXPECT_EQ(route.kind, GLYD_CUDA_ROUTE_FUSED) << route.reason;
  EXPECT_EQ(route.exact, 1u);
  ASSERT_EQ(glyd_cuda_linear(pack_, &call), GLYD_OK) << glyd_cuda_last_error();
  EXPECT_EQ(read(call.y, kTokens * kRows), decoded);
  uint64_t differing = 1;
  ASSERT_EQ(glyd_cuda_self_check(pack_, kTokens, 0, &differing), GLYD_OK);
  EXPECT_EQ(differing, 0u);
}

// What one context has found out another knows; a damaged file is said to be one, and costs only the time.
TEST_F(CudaCapiTest, VerdictsOutliveTheirContext) {
  const std::string path = testing::TempDir() + "/glyd-capi-verdicts";
  std::remove(path.c_str());
  glyd_cuda_options options{};
  options.struct_size = sizeof options;
  options.verdict_file = path.c_str();
  const auto route = [&](bool prepare, std::string& text) {
    glyd_cuda_context* context = nullptr;
    glyd_cuda_pack* pack = nullptr;
    EXPECT_EQ(glyd_cuda_create(&options, &context), GLYD_OK) << glyd_cuda_last_error();
    EXPECT_EQ(glyd_cuda_open(context, host_.data(), host_.size(), device_, &pack), GLYD_OK);
    if (prepare) {
      EXPECT_EQ(glyd_cuda_prepare(pack, &kTokens, 1, 0), GLYD_OK);
    }
    glyd_cuda_route_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(glyd_cuda_route(pack, kTokens, 0, 0, &info), GLYD_OK);
    text = glyd_cuda_verdict_file_text(context);
    glyd_cuda_close(pack);
    glyd_cuda_destroy(context);
    return info.kind;
  };
  std::string text;
  EXPECT_EQ(route(false, text), GLYD_CUDA_ROUTE_DECODE);
  EXPECT_THAT(text, testing::HasSubstr("0 verdicts"));
  EXPECT_EQ(route(true, text), GLYD_CUDA_ROUTE_FUSED);
  EXPECT_THAT(text, testing::HasSubstr("1 verdicts added"));
  EXPECT_EQ(route(false, text), GLYD_CUDA_ROUTE_FUSED);
  EXPECT_THAT(text, testing::HasSubstr("1 verdicts of this GPU"));
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_EQ(route(false, text), GLYD_CUDA_ROUTE_DECODE);
  EXPECT_THAT(text, testing::HasSubstr("not read: " + path));
  EXPECT_EQ(route(true, text), GLYD_CUDA_ROUTE_FUSED);
  EXPECT_EQ(route(false, text), GLYD_CUDA_ROUTE_FUSED);
  options.verdict_file = "/nowhere/at/all";
  EXPECT_EQ(route(true, text), GLYD_CUDA_ROUTE_FUSED);
  EXPECT_THAT(text, testing::HasSubstr("not written: "));
  std::remove(path.c_str());
  std::remove((path + ".lock").c_str());
}

TEST_F(CudaCapiTest, BadPacksAreRefused) {
  Values copy((host_.size() + 1) / 2);
  std::memcpy(copy.data(), host_.data(), host_.size());
  copy[20] ^= 1;
  glyd_cuda_pack* bad = nullptr;
  EXPECT_EQ(glyd_cuda_open(context_, copy.data(), host_.size(), device_, &bad), GLYD_ERROR_CORRUPT);
  EXPECT_EQ(glyd_cuda_open(context_, host_.data(), host_.size() - 128, device_, &bad), GLYD_ERROR_CORRUPT);
  EXPECT_EQ(glyd_cuda_open(context_, host_.data(), host_.size(), static_cast<uint8_t*>(device_) + 64, &bad),
            GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(bad, nullptr);
}

}  // namespace
}  // namespace glyd::test
