// The shapes of public models by many numbers of tokens: wherever the route is called exact, no output differs from
// cuBLAS's, on inputs that `prepare` did not see. GLYD_SHAPES=quick takes a quarter of the shapes and half of the
// numbers: about a minute on an H200.
#include <chrono>
#include <cstdlib>
#include <numeric>

#include "base/parallel.hpp"
#include "dispatch/check_kernels.hpp"
#include "gpu_support.hpp"
#include "model_shapes.hpp"
#include "pack/pack_fast.hpp"

namespace glyd::test {
namespace {

bool quick() {
  const char* value = std::getenv("GLYD_SHAPES");
  return value != nullptr && std::string_view(value) == "quick";
}

// Values enough to fill any matrix by repeating them: a prime number, so that rows do not repeat with them.
constexpr uint64_t kBlockValues = 16777213;

double uniform(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (static_cast<double>(state >> 40) + 0.5) / 16777216.0;
}

// Normal values (times sigma), or exponents spread over 24 octaves.
Values make_block(double sigma, bool wide, uint64_t seed) {
  Values values(kBlockValues);
  parallel_for(values.size(), 1 << 16, 0, [&](uint64_t begin, uint64_t end) {
    uint64_t state = (begin + 1) * 0x9e3779b97f4a7c15u ^ seed * 0xd1b54a32d192ed03u;
    for (uint64_t i = begin; i < end; ++i) {
      const double radius = std::sqrt(-2 * std::log(uniform(state)));
      double value = sigma * radius * std::cos(6.283185307179586 * uniform(state));
      if (wide) value = std::ldexp(value, static_cast<int>(24 * uniform(state)) - 12);
      values[i] = to_bf16(value);
    }
  });
  return values;
}

class Blocks {
 public:
  enum Kind { kWeights, kNormal, kWide, kLarge, kKinds };
  // `count` values of a kind to `out`, beginning at another place for each `from`.
  void fill(uint16_t* out, uint64_t count, Kind kind, uint64_t from) const {
    uint64_t at = from * 1000003 % kBlockValues;
    while (count > 0) {
      const uint64_t now = std::min(count, kBlockValues - at);
      take(cudaMemcpyAsync(out, blocks_[kind].as<uint16_t>() + at, now * 2, cudaMemcpyDeviceToDevice, nullptr));
      out += now, count -= now, at = 0;
    }
  }
  // One column of every row from the large values, as trained models have them.
  void fill_column(uint16_t* x, uint64_t rows, uint64_t cols, uint64_t col) const {
    take(cudaMemcpy2DAsync(x + col, cols * 2, blocks_[kLarge].as<uint16_t>() + col, 2, 2, rows,
                           cudaMemcpyDeviceToDevice, nullptr));
  }

 private:
  cuda::DeviceBuffer blocks_[kKinds] = {upload(make_block(0.02, false, 1)), upload(make_block(1, false, 2)),
                                        upload(make_block(1, true, 3)), upload(make_block(70, false, 4))};
};

// One matrix of random weights, packed on the device, and what is needed to multiply it either way.
class ShapeCheck {
 public:
  ShapeCheck(cuda::Context& context, const Blocks& blocks, const ModelShape& shape, uint64_t most_tokens)
      : context_(context), blocks_(blocks), shape_(shape) {
    const Grid grid{1, shape.rows, shape.cols};
    const uint64_t values = grid.rows * grid.cols, bound = pack_bound(grid);
    const uint64_t scratch_bytes = cuda::pack_scratch_bytes(grid);
    dense_ = take(cuda::DeviceBuffer::allocate(values * 2));
    blocks.fill(dense_.as<uint16_t>(), values, Blocks::kWeights, 0);
    packed_ = take(cuda::DeviceBuffer::allocate(bound));
    const auto scratch = take(cuda::DeviceBuffer::allocate(scratch_bytes));
    const auto header = take(cuda::pack_fast(context, {dense_.as<uint16_t>(), grid, false, packed_.as<uint8_t>(), bound,
                                                       scratch.as<void>(), scratch_bytes, nullptr}));
    std::vector<uint8_t> bytes(kPackHeaderBytes);
    write_pack_header(header.value(), bytes.data());
    pack_ = take(cuda::DevicePack::open(context, bytes, header->pack_bytes, packed_.as<void>()));
    x_ = take(cuda::DeviceBuffer::allocate(most_tokens * grid.cols * 2));
    y_ = take(cuda::DeviceBuffer::allocate(most_tokens * grid.rows * 2));
    expected_ = take(cuda::DeviceBuffer::allocate(most_tokens * grid.rows * 2));
    bias_ = take(cuda::DeviceBuffer::allocate(grid.rows * 2));
    blocks.fill(bias_.as<uint16_t>(), grid.rows, Blocks::kNormal, 77);
    workspace_bytes_ = cuda::linear_workspace_bytes(*pack_);
    workspace_ = take(cuda::DeviceBuffer::allocate(workspace_bytes_));
    take(cuda::initialise_workspace(workspace_.as<void>(), workspace_bytes_, nullptr));
    cublas_workspace_ = take(cuda::DeviceBuffer::allocate(context.cublas_options().workspace_bytes));
    differing_ = take(cuda::DeviceBuffer::allocate(8));
  }

  // Outputs that differ over the kinds of input, and whether the product runs fused.
  uint64_t differing(uint64_t tokens, bool bias, bool& fused) {
    take(cuda::prepare(*pack_, std::span(&tokens, 1), bias));
    fused = cuda::route_of(*pack_, tokens, bias, true).kind == cuda::RouteKind::kFused;
    take(cudaMemsetAsync(differing_.as<void>(), 0, 8, nullptr));
    for (const auto kind : {Blocks::kNormal, Blocks::kWide, Blocks::kLarge}) {
      set_x(tokens, kind);
      multiply(tokens, bias, kind == Blocks::kWide);
      take(cuda::launch_count_differing(y_.as<uint16_t>(), expected_.as<uint16_t>(), tokens * shape_.rows,
                                        differing_.as<uint64_t>(), nullptr));
    }
    uint64_t count = 0;
    take(cudaMemcpy(&count, differing_.as<void>(), 8, cudaMemcpyDeviceToHost));
    return count;
  }

 private:
  // kLarge: normal values with a few columns of large ones.
  void set_x(uint64_t tokens, Blocks::Kind kind) {
    const bool columns = kind == Blocks::kLarge;
    blocks_.fill(x_.as<uint16_t>(), tokens * shape_.cols, columns ? Blocks::kNormal : kind, tokens);
    if (!columns) return;
    for (const uint64_t col : {uint64_t{3}, shape_.cols / 3, shape_.cols / 2 + 1, shape_.cols - 7}) {
      blocks_.fill_column(x_.as<uint16_t>(), tokens, shape_.cols, col);
    }
  }

  void multiply(uint64_t tokens, bool bias, bool early) {
    const cuda::DenseProduct dense{dense_.as<void>(),
                                   x_.as<void>(),
                                   bias ? bias_.as<void>() : nullptr,
                                   expected_.as<void>(),
                                   static_cast<int>(shape_.rows),
                                   static_cast<int>(shape_.cols),
                                   static_cast<int>(tokens),
                                   static_cast<int64_t>(shape_.cols),
                                   static_cast<int64_t>(shape_.rows)};
    take(take(context_.cublas())->multiply(dense, cublas_workspace_.as<void>(), nullptr));
    take(cudaMemsetAsync(y_.as<void>(), 0xff, tokens * shape_.rows * 2, nullptr));
    cuda::LinearCall call;
    call.x = x_.as<uint16_t>(), call.tokens = tokens, call.x_stride = shape_.cols;
    call.bias = bias ? bias_.as<uint16_t>() : nullptr;
    call.y = y_.as<uint16_t>(), call.y_stride = shape_.rows;
    call.workspace = workspace_.as<void>(), call.workspace_bytes = workspace_bytes_;
    call.early = early;
    take(cuda::linear(*pack_, call));
  }

  cuda::Context& context_;
  const Blocks& blocks_;
  ModelShape shape_;
  std::unique_ptr<cuda::DevicePack> pack_;
  cuda::DeviceBuffer dense_, packed_, x_, y_, expected_, bias_, workspace_, cublas_workspace_, differing_;
  uint64_t workspace_bytes_ = 0;
};

class ShapesTest : public GpuTest, public testing::WithParamInterface<ModelFamily> {
 protected:
  static const Blocks& blocks() {
    static const Blocks blocks;
    return blocks;
  }
};

TEST_P(ShapesTest, NoOutputDiffersWhereTheRouteIsExact) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<uint64_t> counts = model_tokens(quick());
  uint64_t fused = 0, products = 0, few_fused = 0, few = 0;
  for (const ModelShape& shape : GetParam().shapes) {
    if (quick() && !shape.quick) continue;
    ShapeCheck check(context(), blocks(), shape, counts.back());
    std::string decoded;
    for (const uint64_t tokens : counts) {
      for (const bool bias : {false, true}) {
        if (bias && !shape.bias) continue;
        bool is_fused = false;
        EXPECT_EQ(check.differing(tokens, bias, is_fused), 0u)
            << shape.rows << " x " << shape.cols << " by " << tokens << (bias ? " with bias" : "")
            << (is_fused ? ", fused" : ", decoded");
        ++products;
        fused += is_fused;
        few += tokens <= cuda::kMostNarrowTokens;
        few_fused += is_fused && tokens <= cuda::kMostNarrowTokens;
        if (!is_fused) decoded += fmt::format(" {}{}", tokens, bias ? "b" : "");
      }
    }
    if (!decoded.empty()) fmt::print("{} x {}: decoded at{}\n", shape.rows, shape.cols, decoded);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  fmt::print("{}: {} of {} products fused, {:.1f} s\n", GetParam().name, fused, products, elapsed.count());
  EXPECT_GE(few_fused * 100, few * 90) << "more tokens may be decoded because that is faster";
}

INSTANTIATE_TEST_SUITE_P(Models, ShapesTest, testing::ValuesIn(model_families()),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace glyd::test
