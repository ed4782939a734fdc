// product_check.cpp - exactness by comparison: the fused product against the same cuBLAS calls that torch makes.
#include <algorithm>
#include <vector>

#include "dispatch/check_kernels.hpp"
#include "dispatch/product.hpp"
#include "unpack/unpack.hpp"

namespace glyd::cuda {
namespace {

// Sums in another order differ in one output of 200 to 5,000, so agreement in 200,000 is strong evidence, though no
// proof (docs/gpu.md has a case that 20,000 missed, before may_fuse_exactly). Shapes too small to give 20,000 with
// kMostInputs inputs are not worth a kernel of their own and are never called exact.
constexpr uint64_t kWantedOutputs = 200000, kLeastOutputs = 20000, kMostInputs = 256;
// From so many tokens on one input has all kinds, each in a part of its rows.
constexpr uint64_t kMixedTokens = 768;
uint64_t inputs_for(uint64_t tokens, uint64_t outputs) {
  const uint64_t least = tokens >= kMixedTokens ? 1 : kInputKinds;
  return std::clamp<uint64_t>(ceil_div(kWantedOutputs, outputs), least, kMostInputs);
}

// Everything a check needs on the device, for one shape.
class Checker {
 public:
  Checker(DevicePack& pack, Cublas& cublas, uint64_t tokens, bool bias)
      : pack_(pack), cublas_(cublas), tokens_(tokens), bias_(bias), outputs_(tokens * pack.header().grid.rows) {}

  Result<void> initialise() {
    const Grid& grid = pack_.header().grid;
    GLYD_TRY(weights_, DeviceBuffer::allocate(grid.rows * grid.cols * 2));
    GLYD_TRY(x_, DeviceBuffer::allocate(tokens_ * grid.cols * 2));
    GLYD_TRY(bias_values_, DeviceBuffer::allocate(grid.rows * 2));
    GLYD_TRY(y_, DeviceBuffer::allocate(outputs_ * 2));
    GLYD_TRY(differing_, DeviceBuffer::allocate(8));
    workspace_bytes_ = kPartialBytes + std::max(cublas_.options().workspace_bytes, pack_.most_outside_bytes());
    GLYD_TRY(workspace_, DeviceBuffer::allocate(workspace_bytes_));
    GLYD_CHECK(initialise_workspace(workspace_.as<void>(), kPartialBytes, nullptr));
    GLYD_CHECK(cuda_check(
        launch_fill_input(bias_values_.as<uint16_t>(), grid.rows, grid.rows, InputKind::kNormal, 0, nullptr), "check"));
    return cuda_check(launch_unpack_matrix(pack_.arrays(), 0, weights_.as<uint16_t>(),
                                           pack_.context().device().limits.multiprocessors, nullptr),
                      "unpack");
  }

  DenseProduct product(void* y) const {
    const Grid& grid = pack_.header().grid;
    return {weights_.as<void>(),
            x_.as<void>(),
            bias_ ? bias_values_.as<void>() : nullptr,
            y,
            static_cast<int>(grid.rows),
            static_cast<int>(grid.cols),
            static_cast<int>(tokens_),
            static_cast<int64_t>(grid.cols),
            static_cast<int64_t>(grid.rows)};
  }
  Result<uint32_t> reported_splits() const { return cublas_.splits(product(y_.as<void>())); }

  // cuBLAS's outputs for each input, once.
  Result<void> multiply_references() {
    for (uint64_t i = 0; i < inputs_for(tokens_, outputs_); ++i) {
      GLYD_TRY(DeviceBuffer reference, DeviceBuffer::allocate(outputs_ * 2));
      GLYD_CHECK(load_input(i));
      GLYD_CHECK(cublas_.multiply(product(reference.as<void>()), workspace_.as<uint8_t>() + kPartialBytes, nullptr));
      references_.push_back(std::move(reference));
    }
    return Ok{};
  }

  // Outputs whose bits differ; stops at the first input that has any.
  Result<uint64_t> differing(const Route& route) {
    const Grid& grid = pack_.header().grid;
    for (size_t i = 0; i < references_.size(); ++i) {
      GLYD_CHECK(load_input(i));
      // What is not written then differs.
      GLYD_CHECK(cuda_check(cudaMemsetAsync(y_.as<void>(), 0xff, outputs_ * 2, nullptr), "check"));
      LinearCall call;
      call.x = x_.as<uint16_t>(), call.tokens = tokens_, call.x_stride = grid.cols;
      call.bias = bias_ ? bias_values_.as<uint16_t>() : nullptr;
      call.y = y_.as<uint16_t>(), call.y_stride = grid.rows;
      call.workspace = workspace_.as<void>(), call.workspace_bytes = workspace_bytes_;
      GLYD_CHECK(launch_fused(pack_, route, call));
      GLYD_CHECK(cuda_check(cudaMemsetAsync(differing_.as<void>(), 0, 8, nullptr), "check"));
      GLYD_CHECK(cuda_check(launch_count_differing(y_.as<uint16_t>(), references_[i].as<uint16_t>(), outputs_,
                                                   differing_.as<uint64_t>(), nullptr),
                            "check"));
      uint64_t count = 0;
      GLYD_CHECK(cuda_check(cudaMemcpy(&count, differing_.as<void>(), 8, cudaMemcpyDeviceToHost), "check"));
      if (count > 0) return count;
    }
    return uint64_t{0};
  }

 private:
  Result<void> load_input(uint64_t i) {
    const uint64_t cols = pack_.header().grid.cols;
    const auto fill = [&](uint64_t begin, uint64_t end, uint64_t number) {
      return cuda_check(launch_fill_input(x_.as<uint16_t>() + begin * cols, (end - begin) * cols, cols,
                                          static_cast<InputKind>(number % kInputKinds), number, nullptr),
                        "check");
    };
    if (tokens_ < kMixedTokens) return fill(0, tokens_, i);
    for (uint64_t part = 0; part < kInputKinds; ++part) {
      GLYD_CHECK(fill(tokens_ * part / kInputKinds, tokens_ * (part + 1) / kInputKinds, part));
    }
    return Ok{};
  }

  DevicePack& pack_;
  Cublas& cublas_;
  uint64_t tokens_;
  bool bias_;
  uint64_t outputs_;
  DeviceBuffer weights_, x_, bias_values_, y_, differing_, workspace_;
  uint64_t workspace_bytes_ = 0;
  std::vector<DeviceBuffer> references_;
};

}  // namespace

Result<Verdict> check_product(DevicePack& pack, uint64_t tokens, bool bias) {
  const ScopedDevice scope(pack.context().device().ordinal);
  const Grid& grid = pack.header().grid;
  Verdict verdict{false, 1, tokens * grid.rows};
  if (!pack.may_route(tokens)) return verdict;
  if (!may_fuse_exactly(pack.header(), tokens) || kMostInputs * tokens * grid.rows < kLeastOutputs) return verdict;
  GLYD_TRY(Cublas* const cublas, pack.context().cublas());
  Checker checker(pack, *cublas, tokens, bias);
  GLYD_CHECK(checker.initialise());
  GLYD_CHECK(checker.multiply_references());
  GLYD_TRY(const uint32_t reported, checker.reported_splits());
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
    if (!pack.may_route(count) || !may_fuse_exactly(pack.header(), count)) continue;
    GLYD_TRY(verdict, check_product(pack, count, bias));
    pack.context().store_verdict(key, verdict);
  }
  pack.context().save_verdicts();
  pack.refresh();
  return Ok{};
}

}  // namespace glyd::cuda
