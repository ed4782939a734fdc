// tails_bench - products from packs whose records have overflow groups, against cuBLAS: from what share on `fast` is no
// longer worth its bytes. JSON lines.

#include "bench_main.hpp"
#include "dispatch/product.hpp"
#include "gpu_report.hpp"
#include "gpu_timer.hpp"
#include "pack/pack_fast.hpp"
#include "random_bf16.hpp"

namespace glyd::bench {
namespace {

using cuda::cuda_check;

// Either normal weights of which some records hold `outliers` values too large for any class, or Student's t.
struct Tails {
  std::string name;
  double share = 0;       // of the records
  uint32_t outliers = 1;  // in such a record
  double freedom = 0;     // degrees of it; 0: normal
};

std::vector<uint16_t> make_weights(const Tails& tails, uint64_t rows, uint64_t cols) {
  if (tails.freedom == 0) {
    auto values = random_bf16(rows, cols, 0.02f, 1, false);
    const uint64_t records = cols / 128;
    for (uint64_t strip = 0; strip < rows / 16; ++strip) {
      for (uint64_t record = 0; record < records; ++record) {
        const uint64_t bits = mix((strip * records + record + 1) * 0x9e3779b97f4a7c15u);
        if (static_cast<double>(bits % 100000) >= tails.share * 100000) continue;
        for (uint32_t i = 0; i < tails.outliers; ++i) {
          const uint64_t place = mix(bits + i);
          values[(strip * 16 + place % 16) * cols + record * 128 + place / 16 % 128] = 0x5f80;  // 2^64
        }
      }
    }
    return values;
  }
  std::vector<uint16_t> values(rows * cols);
  parallel_for(values.size(), 1 << 16, 0, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t bits = mix((i + 1) * 0x9e3779b97f4a7c15u);
      const double u = (static_cast<double>(bits >> 40) + 0.5) / 16777216.0,
                   v = static_cast<double>(bits & 0xffffff) / 16777216.0;
      const double radius = std::sqrt(tails.freedom * (std::pow(u, -2 / tails.freedom) - 1));
      const auto word = std::bit_cast<uint32_t>(static_cast<float>(0.02 * radius * std::cos(6.283185307179586 * v)));
      values[i] = static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
  });
  return values;
}

// Records of the pack that have a group.
Result<uint64_t> count_groups(const PackHeader& header, const uint8_t* device) {
  const uint64_t bytes = header.array_bytes[fast::kPatches];
  std::vector<uint8_t> slots(bytes);
  GLYD_CHECK(
      cuda_check(cudaMemcpy(slots.data(), device + header.array_offset(fast::kPatches), bytes, cudaMemcpyDeviceToHost),
                 "cudaMemcpy"));
  uint64_t groups = 0;
  for (uint64_t at = 0; at < bytes; at += header.slot_bytes) groups += slots[at] >> 7;
  return groups;
}

Result<void> measure(cuda::Context& context, const Tails& tails, uint64_t rows, uint64_t cols, Report& report) {
  const auto values = make_weights(tails, rows, cols);
  const Grid grid{1, rows, cols};
  const uint64_t dense_bytes = values.size() * 2, scratch_bytes = cuda::pack_scratch_bytes(grid);
  std::vector<cuda::DeviceBuffer> dense, packs;
  std::vector<std::unique_ptr<cuda::DevicePack>> opened;
  GLYD_TRY(const auto scratch, cuda::DeviceBuffer::allocate(scratch_bytes));
  PackHeader header;
  std::vector<uint8_t> header_bytes(kPackHeaderBytes);
  for (uint64_t held = 0; held < uint64_t{1200} << 20; held += dense_bytes) {
    GLYD_TRY(auto copy, cuda::DeviceBuffer::allocate(dense_bytes));
    GLYD_CHECK(
        cuda_check(cudaMemcpy(copy.as<void>(), values.data(), dense_bytes, cudaMemcpyHostToDevice), "cudaMemcpy"));
    GLYD_TRY(auto pack, cuda::DeviceBuffer::allocate(pack_bound(grid)));
    const cuda::PackCall call{copy.as<uint16_t>(), grid,          false,  pack.as<uint8_t>(), pack_bound(grid),
                              scratch.as<void>(),  scratch_bytes, nullptr};
    GLYD_TRY(const auto packed, cuda::pack_fast(context, call));
    if (!packed) return Ok{};  // it does not pay
    header = *packed;
    write_pack_header(header, header_bytes.data());
    GLYD_TRY(auto open, cuda::DevicePack::open(context, header_bytes, header.pack_bytes, pack.as<void>()));
    opened.push_back(std::move(open)), packs.push_back(std::move(pack)), dense.push_back(std::move(copy));
  }
  GLYD_TRY(const uint64_t groups, count_groups(header, packs[0].as<uint8_t>()));
  const uint64_t records = grid.strips() * fast::records_a_strip(grid.steps());
  const auto x_values = random_bf16(16, cols, 1, 7, true);
  GLYD_TRY(const auto x, cuda::DeviceBuffer::allocate(x_values.size() * 2));
  GLYD_CHECK(
      cuda_check(cudaMemcpy(x.as<void>(), x_values.data(), x_values.size() * 2, cudaMemcpyHostToDevice), "cudaMemcpy"));
  GLYD_TRY(const auto y, cuda::DeviceBuffer::allocate(16 * rows * 2));
  const uint64_t workspace_bytes = cuda::linear_workspace_bytes(*opened[0]);
  GLYD_TRY(const auto workspace, cuda::DeviceBuffer::allocate(workspace_bytes));
  GLYD_CHECK(cuda::initialise_workspace(workspace.as<void>(), workspace_bytes, nullptr));
  GLYD_TRY(cuda::Cublas* const cublas, context.cublas());
  for (const uint64_t tokens : {1, 8, 16}) {
    GLYD_TRY(const double baseline, time_in_graph(20, 3, [&](int i, cudaStream_t stream) {
               const cuda::DenseProduct product{dense[static_cast<size_t>(i) % dense.size()].as<void>(),
                                                x.as<void>(),
                                                nullptr,
                                                y.as<void>(),
                                                static_cast<int>(rows),
                                                static_cast<int>(cols),
                                                static_cast<int>(tokens),
                                                static_cast<int64_t>(cols),
                                                static_cast<int64_t>(rows)};
               return cublas->multiply(product, workspace.as<uint8_t>() + cuda::kPartialBytes, stream);
             }));
    GLYD_TRY(const double time, time_in_graph(20, 3, [&](int i, cudaStream_t stream) {
               cuda::LinearCall call;
               call.x = x.as<uint16_t>(), call.tokens = tokens, call.x_stride = cols;
               call.y = y.as<uint16_t>(), call.y_stride = rows;
               call.exact = false;
               call.workspace = workspace.as<void>(), call.workspace_bytes = workspace_bytes, call.stream = stream;
               return cuda::linear(*opened[static_cast<size_t>(i) % opened.size()], call);
             }));
    report.write({{"operation", "tails"},
                  {"weights", tails.name},
                  {"matrix", fmt::format("{}x{}", rows, cols)},
                  {"tokens", tokens},
                  {"bits", round4(8.0 * static_cast<double>(header.pack_bytes) / static_cast<double>(values.size()))},
                  {"slot_bytes", header.slot_bytes},
                  {"groups_a_record", round4(static_cast<double>(groups) / static_cast<double>(records))},
                  {"overflow_bytes_a_record",
                   round4(static_cast<double>(header.array_bytes[fast::kOverflow]) / static_cast<double>(records))},
                  {"time_us", round4(time)},
                  {"baseline_us", round4(baseline)},
                  {"ratio", round4(time / baseline)},
                  {"exact", false},
                  {"launch", "plain"},
                  {"arch", "sm_90a"}});
  }
  return Ok{};
}

Result<void> run(const std::string& command, const std::string& json, const std::string& commit) {
  GLYD_TRY(const auto context, cuda::Context::create({}));
  Report report(json);
  GLYD_TRY(cuda::Cublas* const cublas, context->cublas());
  report.head(command, commit, *context, cublas->version());
  std::vector<Tails> all = {{"normal"}};
  for (const double share : {0.01, 0.05, 0.1, 0.2, 0.4, 1.0})
    all.push_back({fmt::format("one in {}", share), share, 1});
  for (const uint32_t outliers : {8u, 40u}) all.push_back({fmt::format("{} in 1", outliers), 1.0, outliers});
  for (const double freedom : {5.0, 3.0, 2.0, 1.5, 1.2, 0.8})
    all.push_back({fmt::format("t {}", freedom), 0, 0, freedom});
  for (const Tails& tails : all) GLYD_CHECK(measure(*context, tails, 12288, 4096, report));
  return Ok{};
}

}  // namespace
}  // namespace glyd::bench

int main(int argc, char** argv) {
  return glyd::bench::bench_main(argc, argv, "tails_bench",
                                 "Times products from packs with heavy tails against cuBLAS.", glyd::bench::run);
}
