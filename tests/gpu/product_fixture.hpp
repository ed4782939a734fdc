// product_fixture.hpp - a matrix, its pack and inputs on the GPU, and what cuBLAS makes of them.
#pragma once

#include "dispatch/product.hpp"
#include "gpu_support.hpp"

namespace glyd::test {

// One matrix, its pack, an input and what cuBLAS makes of them.
class Product {
 public:
  Product(cuda::Context& context, const Values& weights, const Grid& grid, uint64_t most_tokens)
      : context_(context),
        grid_(grid),
        most_tokens_(most_tokens),
        packed_(pack_on_gpu(context, weights, grid, false, Layout::kFast)),
        dense_(upload(weights)) {
    workspace_bytes_ = cuda::linear_workspace_bytes(*packed_.pack);
    workspace_ = take(cuda::DeviceBuffer::allocate(workspace_bytes_));
    take(cuda::initialise_workspace(workspace_.as<void>(), workspace_bytes_, nullptr));
    cublas_workspace_ = take(cuda::DeviceBuffer::allocate(context.cublas_options().workspace_bytes));
    Random random(99);
    Values x(most_tokens * grid.cols);
    for (uint64_t i = 0; i < x.size(); ++i) x[i] = to_bf16(gaussian(random) * (i % grid.cols % 97 == 5 ? 60 : 1));
    set_x(x);
    Values bias(grid.rows);
    for (auto& v : bias) v = to_bf16(gaussian(random));
    bias_ = upload(bias);
  }

  void set_x(const Values& x) { x_ = upload(x); }
  cuda::DevicePack& pack() { return *packed_.pack; }

  Values reference(uint64_t tokens, bool bias, uint64_t matrix = 0) {
    const auto y = poisoned(tokens * grid_.rows * 2);
    cuda::DenseProduct product{dense_.as<uint16_t>() + matrix * grid_.rows * grid_.cols,
                               x_.as<void>(),
                               bias ? bias_.as<void>() : nullptr,
                               y.as<void>(),
                               static_cast<int>(grid_.rows),
                               static_cast<int>(grid_.cols),
                               static_cast<int>(tokens),
                               static_cast<int64_t>(grid_.cols),
                               static_cast<int64_t>(grid_.rows)};
    take(take(context_.cublas())->multiply(product, cublas_workspace_.as<void>(), nullptr));
    return download(y, tokens * grid_.rows);
  }

  cuda::LinearCall call(uint64_t tokens, bool bias, uint16_t* y) {
    cuda::LinearCall call;
    call.x = x_.as<uint16_t>(), call.tokens = tokens, call.x_stride = grid_.cols;
    call.bias = bias ? bias_.as<uint16_t>() : nullptr;
    call.y = y, call.y_stride = grid_.rows;
    call.workspace = workspace_.as<void>(), call.workspace_bytes = workspace_bytes_;
    return call;
  }

  Values fused(uint64_t tokens, bool bias, bool exact = true, bool early = false, uint64_t matrix = 0) {
    const auto y = poisoned(tokens * grid_.rows * 2);
    cuda::LinearCall c = call(tokens, bias, y.as<uint16_t>());
    c.exact = exact, c.early = early, c.matrix = matrix;
    take(cuda::linear(pack(), c));
    return download(y, tokens * grid_.rows);
  }

  void prepare(std::vector<uint64_t> tokens, bool bias) { take(cuda::prepare(pack(), tokens, bias)); }
  bool is_fused(uint64_t tokens, bool bias) {
    return cuda::route_of(pack(), tokens, bias, true).kind == cuda::RouteKind::kFused;
  }
  const Grid& grid() const { return grid_; }

 private:
  cuda::Context& context_;
  Grid grid_;
  uint64_t most_tokens_;
  UploadedPack packed_;
  cuda::DeviceBuffer dense_, x_, bias_, workspace_, cublas_workspace_;
  uint64_t workspace_bytes_ = 0;
};

// x with infinities, a NaN and a row of zeros, for products of 16 tokens and more.
inline Values special_inputs(uint64_t tokens, uint64_t cols) {
  Random random(5);
  Values x(tokens * cols);
  for (uint64_t i = 0; i < x.size(); ++i)
    x[i] = i / cols % 3 == 0 && i % cols == 77 ? 0x7f80 : to_bf16(gaussian(random));
  x[5 * cols + 3] = 0x7fc1;
  for (uint64_t i = 0; i < cols; ++i) x[8 * cols + i] = 0;
  return x;
}

inline uint64_t differing(const Values& a, const Values& b) {
  uint64_t count = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a[i] != b[i];
  return count;
}

}  // namespace glyd::test
