// parts_bench.cpp - where a product's time goes: its parts on data in the cache, one thread, then whole products from
// the cache and from memory; nanoseconds and cycles a record of 16 rows by 128 columns. Not a result to keep: no
// baseline, no limit.
#include <algorithm>
#include <chrono>

#include "base/cpu.hpp"
#include "cpu_bench.hpp"
#include "matrix_source.hpp"
#include "weights/linear/matrix_unit.hpp"
#include "weights/linear/shifted_record.hpp"

namespace glyd::bench {
namespace {

constexpr uint64_t kCols = 4096, kRecords = kCols / 128, kManyRows = 256;

double seconds(const std::function<void()>& body, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of one call, the best of many tries of a millisecond and more each.
double best_seconds(const std::function<void()>& body) {
  int times = 1;
  while (seconds(body, times) < 1e-3) times *= 2;
  double best = 1;
  for (int i = 0; i < 20; ++i) best = std::min(best, seconds(body, times) / times);
  return best;
}

// The core's own clock now: rotations that wait for each other take a cycle each. (Additions of constants need not.)
double cycles_a_second() {
  constexpr int kRotations = 64 * 1024;
  uint64_t bits = 1;
  const double time = best_seconds([&] {
    for (int i = 0; i < kRotations / 8; ++i) {
      __asm__ volatile(
          "ror $1, %0\n ror $1, %0\n ror $1, %0\n ror $1, %0\n ror $1, %0\n ror $1, %0\n ror $1, %0\n ror $1, %0"
          : "+r"(bits));
    }
  });
  return kRotations / time;
}

class Parts {
 public:
  explicit Parts(const Print& print) : print_(print), cycles_(cycles_a_second()) {}

  // `records`: that one call of `body` goes through.
  void measure(const std::string& part, uint64_t tokens, uint64_t records, const std::function<void()>& body) const {
    const double time = best_seconds(body) / static_cast<double>(records);
    nlohmann::ordered_json line = {{"name", "cpu.linear.part"}, {"part", part}};
    if (tokens > 0) line["tokens"] = tokens;
    line["ns_a_record"] = std::round(time * 1e10) / 10;
    line["cycles_a_record"] = std::round(time * cycles_);
    print_(line);
  }

 private:
  const Print& print_;
  const double cycles_;
};

void measure_decoding(const Parts& parts, const MatrixKernels* unit) {
  const auto pack = pack_or_exit(gaussian_bf16(16 * kCols, 1, 0.02), {1, 16, kCols}, Layout::kFast);
  const OpenPack open{pack.bytes(), open_pack(pack.bytes()).value()};
  const auto decoder = layout_ops(Layout::kFast).open(open, Check::kTrust).value();
  alignas(64) static uint16_t tile[16 * kTileStride];
  parts.measure("decode to a tile", 0, kRecords, [&] {
    for (uint64_t r = 0; r < kRecords; ++r) check_or_exit(decoder->decode(0, r, tile));
  });
  const LinearKernels& kernels = linear_kernels(cpu_isa());
  const ShiftedRecords records(open, kernels);
  if (unit != nullptr) {
    parts.measure("decode for the units", 0, kRecords, [&] {
      for (uint64_t r = 0; r < kRecords; ++r) (void)records.decode(records.place_of(0, r), r, *unit, {}, {}, tile);
    });
    const uint8_t* planes = open.array(fast::kPlanes).data();
    parts.measure("decode for the units, no patches", 0, kRecords, [&] {
      for (uint64_t r = 0; r < kRecords; ++r) {
        const uint8_t *first = planes + r * fast::kRecordBytes, *second = first + fast::kChunkBytes;
        unit->decode_chunk({first, first, first, 0, tile}, {});
        unit->decode_chunk({second, second, second, 0, tile + kUnitChunkCols}, {});
      }
    });
  }
  if (kernels.decode_chunk == nullptr) return;
  parts.measure("decode in fragment order", 0, kRecords, [&] {
    for (uint64_t r = 0; r < kRecords; ++r) (void)records.decode(0, r, tile);
  });
}

void measure_unit(const Parts& parts, const MatrixKernels& kernels) {
  constexpr size_t kSteps = kUnitTileCols / kUnitCols;
  alignas(64) static uint16_t tile[kStripRows * kUnitTileCols], y[64 * 16];
  alignas(64) static uint16_t x[kSteps * kMostTokenTiles * kXTileValues];
  alignas(64) static float sums[kSetSums];
  const auto source = gaussian_bf16(64 * kCols, 9, 1);
  for (const uint64_t tokens : {8, 32, 64}) {
    const uint64_t token_tiles = (tokens + 15) / 16, strips = strips_of_set(token_tiles);
    parts.measure("arrange x, 36 strips share it", tokens, 36,
                  [&] { kernels.arrange_x(PairOrder::kFours, source.data(), kCols, tokens, 128, x); });
    const auto multiply = [&](bool in_and_out) {
      if (in_and_out) kernels.load_sums(sums);
      for (uint64_t s = 0; s < strips; ++s) {
        kernels.multiply({.tile = tile,
                          .tile_cols = kUnitTileCols,
                          .steps = kSteps,
                          .x = x,
                          .token_tiles = token_tiles,
                          .strip = s,
                          .sums = sums});
      }
      if (in_and_out) kernels.store_sums(sums);
    };
    kernels.open();
    parts.measure("multiply a set", tokens, strips, [&] { multiply(false); });
    parts.measure("multiply a set, sums in and out", tokens, strips, [&] { multiply(true); });
    kernels.close();
    parts.measure("finish a strip", tokens, kRecords, [&] {
      kernels.finish({.sums = sums, .tokens = tokens, .rows = 16, .bias = nullptr, .y = y, .y_stride = 16});
    });
  }
}

void measure_products(const Parts& parts, Layout layout, const MatrixKernels* unit) {
  const Grid grid{1, kManyRows, kCols};
  const auto pack = pack_or_exit(gaussian_bf16(grid.rows * grid.cols, 1, 0.02), grid, layout);
  const OpenPack open{pack.bytes(), open_pack(pack.bytes()).value()};
  const auto x = gaussian_bf16(64 * kCols, 9, 1);
  std::vector<uint16_t> y(64 * kManyRows);
  const uint64_t records = kManyRows / 16 * kRecords;
  const std::string name = std::string(layout_text(layout)) + ", a product of 256 rows, ";
  for (const uint64_t tokens : {1, 2, 3, 4, 8, 16, 32, 48, 64}) {
    const LinearArgs args{.x = x.data(), .tokens = tokens, .x_stride = kCols, .y = y.data(), .y_stride = kManyRows};
    if (unit != nullptr) {
      parts.measure(name + "amx", tokens, records,
                    [&] { check_or_exit(multiply_by_matrix_unit(open, args, 1, *unit)); });
    }
    const ScopedIsa vectors(std::min(cpu_isa(), Isa::kAvx512));
    parts.measure(name + isa_name(cpu_isa()), tokens, records, [&] { check_or_exit(linear(pack.bytes(), args, 1)); });
  }
}

// From memory: by turns of copies that no cache holds together, in huge pages and, as other programs' memory may be, in
// small ones.
void measure_memory(const Parts& parts) {
  constexpr uint64_t kRows = 4096, kCopies = 12;
  const auto pack = pack_or_exit(gaussian_bf16(kRows * kCols, 1, 0.02), {1, kRows, kCols}, Layout::kFast);
  const uint64_t bytes = round_up<uint64_t>(pack.size(), 128);
  const auto x = gaussian_bf16(64 * kCols, 9, 1);
  std::vector<uint16_t> y(64 * kRows);
  AlignedBuffer huge(kCopies * bytes);
  std::vector<uint8_t> small(kCopies * bytes + 128);
  const auto aligned = small.data() + (128 - reinterpret_cast<uintptr_t>(small.data()) % 128) % 128;
  for (const auto& [memory, name] : {std::pair{huge.data(), "huge"}, std::pair{aligned, "small"}}) {
    for (uint64_t i = 0; i < kCopies; ++i) std::copy_n(pack.data(), pack.size(), memory + i * bytes);
    for (const uint64_t tokens : {1, 8, 32, 64}) {
      for (const int threads : {1, 2}) {
        const LinearArgs args{.x = x.data(), .tokens = tokens, .x_stride = kCols, .y = y.data(), .y_stride = kRows};
        uint64_t turn = 0;
        parts.measure(std::string("fast, from memory in ") + name + " pages, threads: " + std::to_string(threads),
                      tokens, kRows / 16 * kRecords, [&, from = memory] {
                        const uint8_t* copy = from + turn++ % kCopies * bytes;
                        check_or_exit(linear({copy, pack.size()}, args, threads));
                      });
      }
    }
  }
}

}  // namespace

void bench_parts(const Options&, const Print& print) {
  const Parts parts(print);
  const MatrixKernels* unit = matrix_kernels(cpu_isa());
  measure_decoding(parts, unit);
  if (unit != nullptr) measure_unit(parts, *unit);
  measure_products(parts, Layout::kFast, unit);
  measure_products(parts, Layout::kRaw, unit);
  measure_memory(parts);
}

}  // namespace glyd::bench
