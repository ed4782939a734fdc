// experts_bench - products of experts from one pack, against cuBLAS called for each expert that has tokens and against
// this library's own products one by one: CUDA graphs, other experts each call, JSON lines.
#include <numeric>
#include <vector>

#include "bench_main.hpp"
#include "dispatch/experts.hpp"
#include "gpu_report.hpp"
#include "gpu_timer.hpp"
#include "pack/pack_fast.hpp"
#include "random_bf16.hpp"

namespace glyd::bench {
namespace {

using cuda::cuda_check;

// Tokens choose `top` experts each, as evenly as chance has it.
std::vector<int32_t> choose_ends(uint64_t experts, uint64_t tokens, uint64_t top, uint64_t seed) {
  std::vector<int32_t> ends(experts);
  for (uint64_t t = 0; t < tokens; ++t) {
    std::vector<uint64_t> chosen;
    for (uint64_t i = 0; chosen.size() < top; ++i) {
      const uint64_t e = mix(seed * 1000003 + t * 1009 + i) % experts;
      if (std::find(chosen.begin(), chosen.end(), e) == chosen.end()) chosen.push_back(e), ++ends[e];
    }
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  return ends;
}

class Bench {
 public:
  static constexpr uint64_t kMostTokens = 512, kDraws = 20;

  static Result<Bench> create(cuda::Context& context, const Grid& grid) {
    Bench b(context, grid);
    const uint64_t values = grid.stack * grid.rows * grid.cols, scratch_bytes = cuda::pack_scratch_bytes(grid);
    GLYD_TRY(b.dense_, upload(random_bf16(grid.stack * grid.rows, grid.cols, 0.02f, 1, false)));
    GLYD_TRY(b.pack_bytes_, cuda::DeviceBuffer::allocate(pack_bound(grid)));
    GLYD_TRY(const auto scratch, cuda::DeviceBuffer::allocate(scratch_bytes));
    const cuda::PackCall call{
        b.dense_.as<uint16_t>(), grid,          false,  b.pack_bytes_.as<uint8_t>(), pack_bound(grid),
        scratch.as<void>(),      scratch_bytes, nullptr};
    GLYD_TRY(const auto header, cuda::pack_fast(context, call));
    if (!header) return internal("the weights do not pay in `fast`");
    std::vector<uint8_t> bytes(kPackHeaderBytes);
    write_pack_header(*header, bytes.data());
    GLYD_TRY(b.pack_, cuda::DevicePack::open(context, bytes, header->pack_bytes, b.pack_bytes_.as<void>()));
    b.bits_ = 8.0 * static_cast<double>(header->pack_bytes) / static_cast<double>(values);
    GLYD_TRY(b.x_, upload(random_bf16(kMostTokens, grid.cols, 1, 7, true)));
    GLYD_TRY(b.y_, cuda::DeviceBuffer::allocate(kMostTokens * grid.rows * 2));
    b.workspace_bytes_ = cuda::linear_workspace_bytes(*b.pack_);
    GLYD_TRY(b.workspace_, cuda::DeviceBuffer::allocate(b.workspace_bytes_));
    GLYD_CHECK(cuda::initialise_workspace(b.workspace_.as<void>(), b.workspace_bytes_, nullptr));
    return b;
  }

  Result<void> measure(uint64_t tokens, uint64_t top, Report& report) {
    std::vector<std::vector<int32_t>> draws;
    std::vector<cuda::DeviceBuffer> ends;
    uint64_t busy = 0;
    for (uint64_t i = 0; i < kDraws; ++i) {
      draws.push_back(choose_ends(grid_.stack, tokens, top, i));
      for (size_t e = 0; e < draws.back().size(); ++e) busy += draws.back()[e] > (e == 0 ? 0 : draws.back()[e - 1]);
      GLYD_TRY(auto copy, cuda::DeviceBuffer::allocate(grid_.stack * 4));
      GLYD_CHECK(cuda_check(cudaMemcpy(copy.as<void>(), draws.back().data(), grid_.stack * 4, cudaMemcpyHostToDevice),
                            "cudaMemcpy"));
      ends.push_back(std::move(copy));
    }
    GLYD_TRY(cuda::Cublas* const cublas, context_.cublas());
    GLYD_TRY(const double baseline, time_in_graph(kDraws, 3, [&](int i, cudaStream_t stream) {
               return each(draws[static_cast<size_t>(i)], [&](uint64_t e, uint64_t first, uint64_t count) {
                 const cuda::DenseProduct product{dense_.as<uint16_t>() + e * grid_.rows * grid_.cols,
                                                  x_.as<uint16_t>() + first * grid_.cols,
                                                  nullptr,
                                                  y_.as<uint16_t>() + first * grid_.rows,
                                                  static_cast<int>(grid_.rows),
                                                  static_cast<int>(grid_.cols),
                                                  static_cast<int>(count),
                                                  static_cast<int64_t>(grid_.cols),
                                                  static_cast<int64_t>(grid_.rows)};
                 return cublas->multiply(product, workspace_.as<uint8_t>() + cuda::kPartialBytes, stream);
               });
             }));
    GLYD_TRY(const double loop, time_in_graph(kDraws, 3, [&](int i, cudaStream_t stream) {
               return each(draws[static_cast<size_t>(i)], [&](uint64_t e, uint64_t first, uint64_t count) {
                 cuda::LinearCall call;
                 call.matrix = e;
                 call.x = x_.as<uint16_t>() + first * grid_.cols, call.tokens = count, call.x_stride = grid_.cols;
                 call.y = y_.as<uint16_t>() + first * grid_.rows, call.y_stride = grid_.rows;
                 call.exact = false, call.early = true;
                 call.workspace = workspace_.as<void>(), call.workspace_bytes = workspace_bytes_, call.stream = stream;
                 return cuda::linear(*pack_, call);
               });
             }));
    GLYD_TRY(const double time, time_in_graph(kDraws, 3, [&](int i, cudaStream_t stream) {
               cuda::ExpertsCall call;
               call.x = x_.as<uint16_t>(), call.tokens = tokens * top, call.x_stride = grid_.cols;
               call.ends = ends[static_cast<size_t>(i)].as<int32_t>();
               call.y = y_.as<uint16_t>(), call.y_stride = grid_.rows;
               call.exact = false, call.stream = stream;
               return cuda::linear_experts(*pack_, call);
             }));
    report.write({{"operation", "experts"},
                  {"layout", "fast"},
                  {"matrix", fmt::format("{}x{}x{}", grid_.stack, grid_.rows, grid_.cols)},
                  {"tokens", tokens},
                  {"experts_a_token", top},
                  {"busy_experts", round4(static_cast<double>(busy) / kDraws)},
                  {"bits", round4(bits_)},
                  {"exact", false},
                  {"launch", "plain"},
                  {"arch", "generic"},
                  {"time_us", round4(time)},
                  {"one_by_one_us", round4(loop)},
                  {"baseline_us", round4(baseline)},
                  {"ratio", round4(time / baseline)}});
    return Ok{};
  }

 private:
  Bench(cuda::Context& context, const Grid& grid) : context_(context), grid_(grid) {}

  static Result<cuda::DeviceBuffer> upload(const std::vector<uint16_t>& values) {
    GLYD_TRY(auto buffer, cuda::DeviceBuffer::allocate(values.size() * 2));
    GLYD_CHECK(
        cuda_check(cudaMemcpy(buffer.as<void>(), values.data(), values.size() * 2, cudaMemcpyHostToDevice), "upload"));
    return buffer;
  }

  // run(expert, first token, tokens) for each expert that has any.
  template <typename Run>
  Result<void> each(const std::vector<int32_t>& ends, Run&& run) {
    int32_t first = 0;
    for (size_t e = 0; e < ends.size(); first = ends[e++]) {
      if (ends[e] > first) GLYD_CHECK(run(e, static_cast<uint64_t>(first), static_cast<uint64_t>(ends[e] - first)));
    }
    return Ok{};
  }

  cuda::Context& context_;
  Grid grid_;
  double bits_ = 0;
  cuda::DeviceBuffer dense_, pack_bytes_, x_, y_, workspace_;
  uint64_t workspace_bytes_ = 0;
  std::unique_ptr<cuda::DevicePack> pack_;
};

Result<void> run(const std::string& command, const std::string& json, const std::string& commit) {
  GLYD_TRY(const auto context, cuda::Context::create({}));
  Report report(json);
  GLYD_TRY(cuda::Cublas* const cublas, context->cublas());
  report.head(command, commit, *context, cublas->version());
  // Of a model with 128 experts, 8 a token: gate and up merged, and down.
  for (const Grid& grid : {Grid{128, 1536, 2048}, Grid{128, 2048, 768}}) {
    GLYD_TRY(Bench bench, Bench::create(*context, grid));
    for (const uint64_t tokens : {1, 4, 16, 64}) GLYD_CHECK(bench.measure(tokens, 8, report));
  }
  return Ok{};
}

}  // namespace
}  // namespace glyd::bench

int main(int argc, char** argv) {
  return glyd::bench::bench_main(argc, argv, "experts_bench", "Times products of experts from packs against cuBLAS.",
                                 glyd::bench::run);
}
