// product_bench.cpp - products from packs against this library's own product of plain bf16 (layout raw), rotating
// through several matrices so that no cache holds one from call to call.
#include "cpu_bench.hpp"
#include "harness/compare.hpp"
#include "matrix_source.hpp"

namespace glyd::bench {
namespace {

// Times at 8 and 64 tokens are held to torch's (linear_torch.py).
double limit_at(uint64_t tokens, Layout layout) { return layout == Layout::kFast && tokens == 1 ? 0.9 : 0; }

void multiply(const AlignedBuffer& pack, const std::vector<uint16_t>& x, uint64_t tokens, const Grid& grid, int threads,
              std::vector<uint16_t>& y) {
  check_or_exit(linear(pack.bytes(),
                       {.matrix = 0,
                        .x = x.data(),
                        .tokens = tokens,
                        .x_stride = grid.cols,
                        .bias = nullptr,
                        .y = y.data(),
                        .y_stride = grid.rows},
                       threads));
}

}  // namespace

void bench_products(const Options& options, const Print& print) {
  const Grid grid{1, options.rows, options.cols};
  std::vector<AlignedBuffer> raw;
  std::vector<std::vector<AlignedBuffer>> packs(options.layouts.size());
  for (int i = 0; i < options.matrices; ++i) {
    const auto values = gaussian_bf16(grid.rows * grid.cols, static_cast<uint64_t>(i) + 1, 0.02);
    raw.push_back(pack_or_exit(values, grid, Layout::kRaw));
    for (size_t k = 0; k < packs.size(); ++k) packs[k].push_back(pack_or_exit(values, grid, options.layouts[k]));
  }
  for (const uint64_t tokens : options.tokens) {
    const auto x = gaussian_bf16(tokens * grid.cols, 99, 1);
    std::vector<uint16_t> y(tokens * grid.rows);
    for (size_t k = 0; k < packs.size(); ++k) {
      for (const int threads : options.threads) {
        const auto measured = compare(
            options.rounds,
            [&](int round) {
              multiply(raw[static_cast<size_t>(round % options.matrices)], x, tokens, grid, threads, y);
            },
            [&](int round) {
              multiply(packs[k][static_cast<size_t>(round % options.matrices)], x, tokens, grid, threads, y);
            });
        const Layout layout = options.layouts[k];
        print(result_line({{"name", "cpu.linear"},
                           {"layout", layout_text(layout)},
                           {"matrix", shape_text(grid.rows, grid.cols)},
                           {"tokens", tokens},
                           {"threads", threads}},
                          "glyd_linear of layout raw", measured, 2.0 * static_cast<double>(grid.rows * grid.cols),
                          {RatioOf::kTime, limit_at(tokens, layout)}));
      }
    }
  }
}

}  // namespace glyd::bench
