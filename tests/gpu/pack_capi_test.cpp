// Packing on the device as a C caller sees it: glyd_pack's bytes, whatever the layout, shape and alignment.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "glyd/cuda.h"
#include "unit/weights/matrices.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

// Device memory that frees itself, all its bytes 0xff at first.
class Device {
 public:
  explicit Device(uint64_t bytes) {
    EXPECT_EQ(cudaMalloc(&data_, bytes + 16), cudaSuccess);
    EXPECT_EQ(cudaMemset(data_, 0xff, bytes + 16), cudaSuccess);
  }
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  void write(const void* from, uint64_t bytes, uint64_t at = 0) {
    EXPECT_EQ(cudaMemcpy(static_cast<uint8_t*>(data_) + at, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<uint8_t> read(uint64_t bytes) const {
    std::vector<uint8_t> out(bytes);
    EXPECT_EQ(cudaMemcpy(out.data(), data_, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return out;
  }
  template <typename T = void>
  T* get(uint64_t at = 0) const {
    return reinterpret_cast<T*>(static_cast<uint8_t*>(data_) + at);
  }

 private:
  void* data_ = nullptr;
};

glyd_cuda_pack_call empty_call() {
  glyd_cuda_pack_call call{};
  call.struct_size = sizeof call;
  return call;
}

TEST(PackCapi, BoundsNeedNoGpu) {
  const glyd_shape shape{2, 100, 300, 0, 0};
  uint64_t bytes = 0, expected = 0, workspace = 0;
  ASSERT_EQ(glyd_cuda_pack_bound(&shape, &bytes, &workspace), GLYD_OK);
  expected = pack_bound({2, 100, 300});
  EXPECT_EQ(bytes, expected);
  EXPECT_GT(workspace, 0u);
  EXPECT_EQ(glyd_cuda_pack_bound(&shape, nullptr, nullptr), GLYD_OK);
  EXPECT_EQ(glyd_cuda_pack_bound(nullptr, &bytes, nullptr), GLYD_ERROR_INVALID_ARGUMENT);
  const glyd_shape huge{1, uint64_t{1} << 31, 1, 0, 0};
  EXPECT_NE(glyd_cuda_pack_bound(&huge, &bytes, nullptr), GLYD_OK);
}

class PackCapiTest : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
    ASSERT_EQ(glyd_cuda_create(nullptr, &context_), GLYD_OK) << glyd_cuda_last_error();
  }
  void TearDown() override { glyd_cuda_destroy(context_); }

  // The pack that the device makes; `shift`: bytes that its source lies off 16.
  std::vector<uint8_t> pack(const Values& values, const glyd_shape& shape, glyd_layout layout, uint64_t shift = 0) {
    uint64_t capacity = 0, workspace_bytes = 0, bytes = 0;
    EXPECT_EQ(glyd_cuda_pack_bound(&shape, &capacity, &workspace_bytes), GLYD_OK);
    Device source(values.size() * 2 + shift), packed(capacity), workspace(workspace_bytes);
    source.write(values.data(), values.size() * 2, shift);
    glyd_cuda_pack_call call = empty_call();
    call.bf16 = source.get<uint16_t>(shift), call.shape = shape, call.layout = layout;
    call.pack = packed.get(), call.pack_capacity = capacity;
    call.workspace = workspace.get(), call.workspace_bytes = workspace_bytes;
    std::vector<uint8_t> header(kPackHeaderBytes);
    EXPECT_EQ(glyd_cuda_pack_tensor(context_, &call, header.data(), &bytes), GLYD_OK) << glyd_cuda_last_error();
    auto out = packed.read(bytes);
    EXPECT_TRUE(std::equal(header.begin(), header.end(), out.begin()));
    return out;
  }
  static std::vector<uint8_t> expected(const Values& values, const glyd_shape& shape, glyd_layout layout) {
    const Grid grid{shape.stack, shape.rows, shape.cols};
    const bool transposed = shape.transposed != 0;
    const auto packed = layout == GLYD_LAYOUT_AUTO
                            ? pack_tensor_auto(values, grid, transposed, 0)
                            : pack_tensor(values, grid, transposed, static_cast<Layout>(layout), 0);
    EXPECT_TRUE(packed);
    const ByteSpan bytes = packed.value().bytes();
    return {bytes.begin(), bytes.end()};
  }

  glyd_cuda_context* context_ = nullptr;
};

TEST_F(PackCapiTest, GivesGlydPacksBytes) {
  const glyd_shape shapes[] = {{1, 128, 384, 0, 0}, {2, 33, 136, 0, 0}, {1, 100, 333, 0, 0},
                               {1, 48, 264, 1, 0},  {3, 17, 16, 1, 0},  {1, 1, 1, 0, 0}};
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const glyd_shape& shape : shapes) {
      const Values values = make_values(kind, shape.stack * shape.rows * shape.cols, shape.cols, 4);
      for (const glyd_layout layout : {GLYD_LAYOUT_FAST, GLYD_LAYOUT_SMALL, GLYD_LAYOUT_RAW, GLYD_LAYOUT_AUTO}) {
        SCOPED_TRACE(
            fmt::format("{} {}x{}x{} {}", kind.name, shape.stack, shape.rows, shape.cols, static_cast<int>(layout)));
        ASSERT_EQ(pack(values, shape, layout), expected(values, shape, layout));
      }
    }
  }
}

// Where a weight in fifty has a rare exponent, products from `fast` are slower than from bf16.
TEST_F(PackCapiTest, HeavyTailsBecomeRaw) {
  const glyd_shape shape{1, 64, 1024, 0, 0};
  Values values = make_values(matrix_kind("Gaussian"), shape.rows * shape.cols, shape.cols, 8);
  for (uint64_t i = 0; i < values.size(); i += 51) values[i] = bf16_join(0, static_cast<uint32_t>(60 + i % 89), 1);
  const auto packed = pack(values, shape, GLYD_LAYOUT_AUTO);
  EXPECT_EQ(packed, expected(values, shape, GLYD_LAYOUT_RAW));
  EXPECT_EQ(pack(values, shape, GLYD_LAYOUT_FAST), expected(values, shape, GLYD_LAYOUT_FAST));
  EXPECT_LT(expected(values, shape, GLYD_LAYOUT_FAST).size(), packed.size());
}

// Values that start at no multiple of 16, so that nothing is read by vectors.
TEST_F(PackCapiTest, AnyAlignmentOfTheSource) {
  const glyd_shape shape{1, 70, 520, 0, 0};
  const Values values = make_values(matrix_kind("HeavyTails"), 70 * 520, 520, 5);
  for (uint64_t shift = 0; shift < 16; shift += 2) {
    ASSERT_EQ(pack(values, shape, GLYD_LAYOUT_FAST, shift), expected(values, shape, GLYD_LAYOUT_FAST)) << shift;
  }
}

// Many records with groups, over many tiles of places, and the same bytes again.
TEST_F(PackCapiTest, LargeTensorsTwice) {
  for (const char* kind : {"Gaussian", "HeavyTails", "ScaledRows"}) {
    const glyd_shape shape{1, 2064, 4232, 0, 0};
    const Values values = make_values(matrix_kind(kind), shape.rows * shape.cols, shape.cols, 6);
    const auto wanted = expected(values, shape, GLYD_LAYOUT_FAST);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(pack(values, shape, GLYD_LAYOUT_FAST), wanted) << kind;
  }
}

TEST_F(PackCapiTest, TensorsWithoutValues) {
  for (const glyd_shape& shape : {glyd_shape{0, 16, 16, 0, 0}, glyd_shape{1, 0, 8, 0, 0}, glyd_shape{4, 8, 0, 1, 0}}) {
    for (const glyd_layout layout : {GLYD_LAYOUT_FAST, GLYD_LAYOUT_SMALL, GLYD_LAYOUT_RAW}) {
      ASSERT_EQ(pack({}, shape, layout), expected({}, shape, layout));
    }
  }
}

TEST_F(PackCapiTest, BadCallsAreRefusedAndLeaveTheOutputsAlone) {
  const glyd_shape shape{1, 64, 256, 0, 0};
  const Values values = make_values(matrix_kind("Gaussian"), 64 * 256, 256, 7);
  uint64_t capacity = 0, workspace_bytes = 0;
  ASSERT_EQ(glyd_cuda_pack_bound(&shape, &capacity, &workspace_bytes), GLYD_OK);
  Device source(values.size() * 2), packed(capacity), workspace(workspace_bytes);
  source.write(values.data(), values.size() * 2);
  glyd_cuda_pack_call sound = empty_call();
  sound.bf16 = source.get<uint16_t>(), sound.shape = shape, sound.layout = GLYD_LAYOUT_FAST;
  sound.pack = packed.get(), sound.pack_capacity = capacity;
  sound.workspace = workspace.get(), sound.workspace_bytes = workspace_bytes;
  std::vector<uint8_t> header(kPackHeaderBytes, 0x5a);
  uint64_t bytes = 77;
  const auto refuse = [&](glyd_status status, const std::function<void(glyd_cuda_pack_call&)>& change) {
    glyd_cuda_pack_call call = sound;
    change(call);
    EXPECT_EQ(glyd_cuda_pack_tensor(context_, &call, header.data(), &bytes), status) << glyd_cuda_last_error();
    EXPECT_EQ(bytes, 77u);
    EXPECT_EQ(header, std::vector<uint8_t>(kPackHeaderBytes, 0x5a));
  };
  refuse(GLYD_ERROR_INVALID_ARGUMENT, [](auto& c) { c.struct_size = 0; });
  refuse(GLYD_ERROR_INVALID_ARGUMENT, [](auto& c) { c.bf16 = nullptr; });
  refuse(GLYD_ERROR_INVALID_ARGUMENT, [](auto& c) { c.pack = nullptr; });
  refuse(GLYD_ERROR_INVALID_ARGUMENT, [](auto& c) { c.pack = static_cast<uint8_t*>(c.pack) + 64; });
  refuse(GLYD_ERROR_INVALID_ARGUMENT, [](auto& c) { c.workspace = static_cast<uint8_t*>(c.workspace) + 4; });
  refuse(GLYD_ERROR_INVALID_ARGUMENT, [](auto& c) { c.layout = static_cast<glyd_layout>(9); });
  refuse(GLYD_ERROR_INVALID_ARGUMENT, [](auto& c) { c.shape.transposed = 2; });
  refuse(GLYD_ERROR_INVALID_ARGUMENT, [](auto& c) { c.shape.reserved = 1; });
  refuse(GLYD_ERROR_BUFFER_TOO_SMALL, [](auto& c) { c.workspace_bytes -= 1; });
  refuse(GLYD_ERROR_BUFFER_TOO_SMALL, [](auto& c) { c.workspace = nullptr; });
  for (const glyd_layout layout : {GLYD_LAYOUT_FAST, GLYD_LAYOUT_SMALL, GLYD_LAYOUT_RAW}) {
    const uint64_t needed = expected(values, shape, layout).size();
    refuse(GLYD_ERROR_BUFFER_TOO_SMALL, [&](auto& c) { c.layout = layout, c.pack_capacity = needed - 1; });
    refuse(GLYD_ERROR_BUFFER_TOO_SMALL, [&](auto& c) { c.layout = layout, c.pack_capacity = 0; });
  }
  EXPECT_EQ(glyd_cuda_pack_tensor(nullptr, &sound, header.data(), &bytes), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_pack_tensor(context_, nullptr, header.data(), &bytes), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_pack_tensor(context_, &sound, nullptr, &bytes), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_pack_tensor(context_, &sound, header.data(), nullptr), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_cuda_pack_tensor(context_, &sound, header.data(), &bytes), GLYD_OK);
}

// A capacity of exactly the pack's bytes will do, and nothing behind it is written.
TEST_F(PackCapiTest, StaysInsideItsCapacity) {
  const glyd_shape shape{1, 130, 700, 0, 0};
  const Values values = make_values(matrix_kind("HeavyTails"), 130 * 700, 700, 8);
  uint64_t workspace_bytes = 0;
  ASSERT_EQ(glyd_cuda_pack_bound(&shape, nullptr, &workspace_bytes), GLYD_OK);
  for (const glyd_layout layout : {GLYD_LAYOUT_FAST, GLYD_LAYOUT_SMALL, GLYD_LAYOUT_RAW}) {
    const auto wanted = expected(values, shape, layout);
    Device source(values.size() * 2), packed(wanted.size() + 4096), workspace(workspace_bytes + 4096);
    source.write(values.data(), values.size() * 2);
    glyd_cuda_pack_call call = empty_call();
    call.bf16 = source.get<uint16_t>(), call.shape = shape, call.layout = layout;
    call.pack = packed.get(), call.pack_capacity = wanted.size();
    call.workspace = workspace.get(), call.workspace_bytes = workspace_bytes;
    std::vector<uint8_t> header(kPackHeaderBytes);
    uint64_t bytes = 0;
    ASSERT_EQ(glyd_cuda_pack_tensor(context_, &call, header.data(), &bytes), GLYD_OK) << glyd_cuda_last_error();
    const auto all = packed.read(wanted.size() + 4096);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), all.begin()));
    EXPECT_EQ(std::count(all.begin() + static_cast<long>(wanted.size()), all.end(), 0xff), 4096);
    const auto scratch = workspace.read(workspace_bytes + 4096);
    EXPECT_EQ(std::count(scratch.begin() + static_cast<long>(workspace_bytes), scratch.end(), 0xff), 4096);
  }
}

// What was packed on the device multiplies and decodes there.
TEST_F(PackCapiTest, OpensWhatItPacked) {
  const glyd_shape shape{1, 256, 512, 0, 0};
  const Values values = make_values(matrix_kind("Gaussian"), 256 * 512, 512, 9);
  for (const glyd_layout layout : {GLYD_LAYOUT_FAST, GLYD_LAYOUT_SMALL, GLYD_LAYOUT_RAW}) {
    const auto bytes = pack(values, shape, layout);
    Device device(bytes.size()), out(values.size() * 2);
    device.write(bytes.data(), bytes.size());
    glyd_cuda_pack* opened = nullptr;
    ASSERT_EQ(glyd_cuda_open(context_, bytes.data(), bytes.size(), device.get(), &opened), GLYD_OK);
    ASSERT_EQ(glyd_cuda_unpack(opened, out.get<uint16_t>(), nullptr), GLYD_OK);
    const auto decoded = out.read(values.size() * 2);
    EXPECT_EQ(std::memcmp(decoded.data(), values.data(), decoded.size()), 0);
    glyd_cuda_close(opened);
  }
}

}  // namespace
}  // namespace glyd::test
