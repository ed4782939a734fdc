// product_check.cpp - exactness by comparison: the fused product against the same cuBLAS calls that torch makes.
#include <cmath>
#include <vector>

#include "dispatch/product.hpp"
#include "unpack/unpack.hpp"

namespace glyd::cuda {
namespace {

// Inputs that sums are compared on: ordinary ones, outlier columns as trained models have, and exponents spread wide.
enum class InputKind { kNormal, kOutliers, kWide };
constexpr uint32_t kInputKinds = 3;

// Sums in another order differ in one output of 200 to 1,000, so agreement in 20,000 is strong evidence, though no
// proof (docs/gpu.md has a case that it missed, before may_fuse_exactly). Shapes too small to give as many with
// kMostInputs inputs are not worth a kernel of their own and are never called exact.
constexpr uint64_t kLeastOutputs = 20000, kMostInputs = 128;
uint64_t inputs_for(uint64_t outputs) { return std::max<uint64_t>(kInputKinds, ceil_div(kLeastOutputs, outputs)); }

uint64_t next_random(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint16_t truncate_to_bf16(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }

std::vector<uint16_t> make_input(uint64_t number, uint64_t rows, uint64_t cols) {
  const auto kind = static_cast<InputKind>(number % kInputKinds);
  std::vector<uint16_t> values(rows * cols);
  uint64_t state = number * 0x632be59bd9b4e019u;
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = next_random(state);
    // Four uniform numbers: near enough to a normal one.
    float v = 0;
    for (uint32_t k = 0; k < 4; ++k) v += static_cast<float>(bits >> (16 * k) & 0xffff) / 65536.0f - 0.5f;
    if (kind == InputKind::kOutliers && i % cols % 97 == 5) v *= 60;
    if (kind == InputKind::kWide) v = std::ldexp(v, static_cast<int>(bits % 24) - 12);
    values[i] = truncate_to_bf16(v);
  }
  return values;
}

// Everything a check needs on the device, for one shape.
class Checker {
 public:
  Checker(DevicePack& pack, Cublas& cublas, uint64_t tokens, bool bias)
      : pack_(pack), cublas_(cublas), tokens_(tokens), bias_(bias) {}

  Result<void> initialise() {
    const Grid& grid = pack_.header().grid;
    GLYD_TRY(weights_, DeviceBuffer::allocate(grid.rows * grid.cols * 2));
    GLYD_TRY(x_, DeviceBuffer::allocate(tokens_ * grid.cols * 2));
    GLYD_TRY(bias_values_, DeviceBuffer::allocate(grid.rows * 2));
    GLYD_TRY(y_, DeviceBuffer::allocate(tokens_ * grid.rows * 2));
    GLYD_TRY(workspace_, DeviceBuffer::allocate(kPartialBytes + cublas_.options().workspace_bytes));
    GLYD_CHECK(initialise_workspace(workspace_.as<void>(), kPartialBytes, nullptr));
    const auto bias = make_input(0, 1, grid.rows);
    GLYD_CHECK(cuda_check(cudaMemcpy(bias_values_.as<void>(), bias.data(), grid.rows * 2, cudaMemcpyHostToDevice),
                          "cudaMemcpy"));
    return cuda_check(launch_unpack_matrix(pack_.arrays(), 0, weights_.as<uint16_t>(),
                                           pack_.context().device().limits.multiprocessors, nullptr),
                      "unpack");
  }

  DenseProduct product() const {
    const Grid& grid = pack_.header().grid;
    return {weights_.as<void>(),
            x_.as<void>(),
            bias_ ? bias_values_.as<void>() : nullptr,
            y_.as<void>(),
            static_cast<int>(grid.rows),
            static_cast<int>(grid.cols),
            static_cast<int>(tokens_),
            static_cast<int64_t>(grid.cols),
            static_cast<int64_t>(grid.rows)};
  }

  // cuBLAS's outputs for each input, once.
  Result<void> multiply_references() {
    const Grid& grid = pack_.header().grid;
    for (uint64_t i = 0; i < inputs_for(tokens_ * grid.rows); ++i) {
      inputs_.push_back(make_input(i, tokens_, grid.cols));
      GLYD_CHECK(load_input(inputs_.size() - 1));
      GLYD_CHECK(cublas_.multiply(product(), workspace_.as<uint8_t>() + kPartialBytes, nullptr));
      references_.emplace_back();
      GLYD_CHECK(read_output(references_.back()));
    }
    return Ok{};
  }

  // Outputs whose bits differ, over all inputs; stops at the first input that has any.
  Result<uint64_t> differing(const Route& route) {
    const Grid& grid = pack_.header().grid;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      GLYD_CHECK(load_input(i));
      LinearCall call;
      call.x = x_.as<uint16_t>(), call.tokens = tokens_, call.x_stride = grid.cols;
      call.bias = bias_ ? bias_values_.as<uint16_t>() : nullptr;
      call.y = y_.as<uint16_t>(), call.y_stride = grid.rows;
      call.workspace = workspace_.as<void>(), call.workspace_bytes = kPartialBytes;
      GLYD_CHECK(launch_fused(pack_, route, call));
      std::vector<uint16_t> output;
      GLYD_CHECK(read_output(output));
      uint64_t count = 0;
      for (size_t o = 0; o < output.size(); ++o) count += output[o] != references_[i][o];
      if (count > 0) return count;
    }
    return uint64_t{0};
  }

 private:
  Result<void> load_input(size_t i) {
    GLYD_CHECK(cuda_check(cudaMemset(y_.as<void>(), 0xff, tokens_ * pack_.header().grid.rows * 2), "cudaMemset"));
    return cuda_check(cudaMemcpy(x_.as<void>(), inputs_[i].data(), inputs_[i].size() * 2, cudaMemcpyHostToDevice),
                      "cudaMemcpy");
  }
  Result<void> read_output(std::vector<uint16_t>& out) {
    out.resize(tokens_ * pack_.header().grid.rows);
    return cuda_check(cudaMemcpy(out.data(), y_.as<void>(), out.size() * 2, cudaMemcpyDeviceToHost), "check");
  }

  DevicePack& pack_;
  Cublas& cublas_;
  uint64_t tokens_;
  bool bias_;
  DeviceBuffer weights_, x_, bias_values_, y_, workspace_;
  std::vector<std::vector<uint16_t>> inputs_, references_;
};

}  // namespace

Result<Verdict> check_product(DevicePack& pack, uint64_t tokens, bool bias) {
  const ScopedDevice scope(pack.context().device().ordinal);
  const Grid& grid = pack.header().grid;
  Verdict verdict{false, 1, tokens * grid.rows};
  if (!may_fuse_exactly(pack.header(), tokens) || inputs_for(tokens * grid.rows) > kMostInputs) return verdict;
  GLYD_TRY(Cublas* const cublas, pack.context().cublas());
  Checker checker(pack, *cublas, tokens, bias);
  GLYD_CHECK(checker.initialise());
  GLYD_CHECK(checker.multiply_references());
  GLYD_TRY(const uint32_t reported, cublas->splits(checker.product()));
  for (uint32_t i = 0; i <= 16; ++i) {  // the heuristic's own, then 1 ... 16
    const uint32_t splits = i == 0 ? reported : i;
    if (i > 0 && splits == reported) continue;
    const Route* const route = pack.route_of_splits(tokens, splits);
    if (route == nullptr) continue;
    GLYD_TRY(const uint64_t differing, checker.differing(*route));
    if (differing < verdict.differing) verdict = {differing == 0, splits, differing};
    if (differing == 0) break;
  }
  return verdict;
}

Result<void> prepare(DevicePack& pack, std::span<const uint64_t> tokens, bool bias) {
  for (const uint64_t count : tokens) {
    const ProductKey key{pack.header().grid.rows, pack.header().grid.cols, count, bias};
    Verdict verdict;
    if (count == 0 || pack.context().find_verdict(key, verdict)) continue;
    if (!may_fuse_exactly(pack.header(), count)) continue;
    GLYD_TRY(verdict, check_product(pack, count, bias));
    pack.context().store_verdict(key, verdict);
  }
  pack.refresh();
  return Ok{};
}

}  // namespace glyd::cuda
