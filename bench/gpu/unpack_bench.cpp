// unpack_bench - decoding whole packs on the GPU against a copy that moves as many bytes.
#include <chrono>

#include "bench_main.hpp"
#include "gpu_report.hpp"
#include "gpu_timer.hpp"
#include "pack/pack_fast.hpp"
#include "random_bf16.hpp"
#include "unpack/unpack.hpp"
#include "weights/weights.hpp"

namespace glyd::bench {
namespace {

using cuda::cuda_check;

Result<void> measure(cuda::Context& context, Layout layout, uint64_t rows, uint64_t cols, Report& report) {
  const auto values = random_bf16(rows, cols, 0.02f, 1, false);
  GLYD_TRY(const AlignedBuffer packed, pack_tensor(values, {1, rows, cols}, false, layout, 0));
  const uint64_t bf16_bytes = values.size() * 2, traffic = packed.size() + bf16_bytes, half = traffic / 2;
  GLYD_TRY(const auto device, cuda::DeviceBuffer::allocate(packed.size()));
  GLYD_CHECK(
      cuda_check(cudaMemcpy(device.as<void>(), packed.data(), packed.size(), cudaMemcpyHostToDevice), "cudaMemcpy"));
  GLYD_TRY(const auto out, cuda::DeviceBuffer::allocate(bf16_bytes));
  GLYD_TRY(const auto from, cuda::DeviceBuffer::allocate(half));
  GLYD_TRY(const auto to, cuda::DeviceBuffer::allocate(half));
  GLYD_TRY(const auto pack,
           cuda::DevicePack::open(context, packed.bytes().first(kPackHeaderBytes), packed.size(), device.as<void>()));
  const uint32_t multiprocessors = context.device().limits.multiprocessors;
  GLYD_TRY(const double time, time_in_graph(5, 5, [&](int, cudaStream_t stream) {
             return cuda_check(cuda::launch_unpack(pack->arrays(), out.as<uint16_t>(), multiprocessors, stream),
                               "unpack");
           }));
  GLYD_TRY(const double copy, time_in_graph(5, 5, [&](int, cudaStream_t stream) {
             return cuda_check(cudaMemcpyAsync(to.as<void>(), from.as<void>(), half, cudaMemcpyDeviceToDevice, stream),
                               "copy");
           }));
  std::vector<uint16_t> decoded(values.size());
  GLYD_CHECK(cuda_check(cudaMemcpy(decoded.data(), out.as<void>(), bf16_bytes, cudaMemcpyDeviceToHost), "cudaMemcpy"));
  uint64_t differing = 0;
  for (size_t i = 0; i < values.size(); ++i) differing += decoded[i] != values[i];
  report.write({{"operation", "unpack"},
                {"layout", layout == Layout::kFast ? "fast" : "small"},
                {"matrix", fmt::format("{}x{}", rows, cols)},
                {"arch", "sm_90a"},
                {"time_us", round4(time)},
                {"copy_us", round4(copy)},
                {"rate_of_copy", round4(copy / time)},
                {"bf16_gb_a_second", round4(static_cast<double>(bf16_bytes) / time * 1e-3)},
                {"differing_values", differing}});
  return Ok{};
}

// Packing synchronises, so it is timed by the host's clock.
Result<void> measure_pack(cuda::Context& context, uint64_t rows, uint64_t cols, Report& report) {
  const auto values = random_bf16(rows, cols, 0.02f, 1, false);
  const Grid grid{1, rows, cols};
  const uint64_t bf16_bytes = values.size() * 2, scratch_bytes = cuda::pack_scratch_bytes(grid);
  GLYD_TRY(const auto source, cuda::DeviceBuffer::allocate(bf16_bytes));
  GLYD_CHECK(
      cuda_check(cudaMemcpy(source.as<void>(), values.data(), bf16_bytes, cudaMemcpyHostToDevice), "cudaMemcpy"));
  GLYD_TRY(const auto packed, cuda::DeviceBuffer::allocate(pack_bound(grid)));
  GLYD_TRY(const auto scratch, cuda::DeviceBuffer::allocate(scratch_bytes));
  const cuda::PackCall call{source.as<uint16_t>(), grid,          false,  packed.as<uint8_t>(), pack_bound(grid),
                            scratch.as<void>(),    scratch_bytes, nullptr};
  std::vector<double> times;
  for (int i = 0; i < 6; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    GLYD_TRY(const auto header, cuda::pack_fast(context, call));
    if (!header) return internal("pack: fast does not pay for normal weights");
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    if (i > 0) times.push_back(elapsed.count());
  }
  std::nth_element(times.begin(), times.begin() + 2, times.end());
  report.write({{"operation", "pack"},
                {"layout", "fast"},
                {"matrix", fmt::format("{}x{}", rows, cols)},
                {"arch", "sm_90a"},
                {"time_us", round4(times[2])},
                {"bf16_gb_a_second", round4(static_cast<double>(bf16_bytes) / times[2] * 1e-3)}});
  return Ok{};
}

Result<void> run(const std::string& command, const std::string& json, const std::string& commit) {
  GLYD_TRY(const auto context, cuda::Context::create({}));
  Report report(json);
  GLYD_TRY(cuda::Cublas* const cublas, context->cublas());
  report.head(command, commit, *context, cublas->version());
  GLYD_CHECK(measure_pack(*context, 24576, 4096, report));
  GLYD_CHECK(measure_pack(*context, 151936, 4096, report));
  for (const Layout layout : {Layout::kFast, Layout::kSmall}) {
    GLYD_CHECK(measure(*context, layout, 24576, 4096, report));
    GLYD_CHECK(measure(*context, layout, 4096, 12288, report));
    GLYD_CHECK(measure(*context, layout, 151936, 4096, report));
  }
  return Ok{};
}

}  // namespace
}  // namespace glyd::bench

int main(int argc, char** argv) {
  return glyd::bench::bench_main(argc, argv, "unpack_bench",
                                 "Times decoding of packs on the GPU against a copy of as many bytes.",
                                 glyd::bench::run);
}
