// pack_bench.cpp - decode against memcpy; pack (with the tensor's hash, decoded again and compared, as checkpoints are
// packed) and verify against sha256.
#include <algorithm>
#include <cstring>

#include "base/aligned_buffer.hpp"
#include "base/parallel.hpp"
#include "base/sha256.hpp"
#include "cpu_bench.hpp"
#include "harness/compare.hpp"
#include "matrix_source.hpp"

namespace glyd::bench {
namespace {

// bf16 values in memory as `glyd pack` and `glyd verify` hold a tensor: in huge pages where the system has them.
struct Values {
  explicit Values(uint64_t count) : memory(2 * count) { std::memset(memory.data(), 0, memory.size()); }
  std::span<uint16_t> span() { return {reinterpret_cast<uint16_t*>(memory.data()), memory.size() / 2}; }
  AlignedBuffer memory;
};

struct Subject {
  Grid grid;
  Values source, decoded;
  std::span<const uint16_t> values() { return source.span(); }
  std::span<uint16_t> out() { return decoded.span(); }
};

Subject make_subject(const Options& options) {
  const Grid grid{1, options.pack_rows, options.pack_cols};
  Subject subject{grid, Values(grid.rows * grid.cols), Values(grid.rows * grid.cols)};
  std::ranges::copy(gaussian_bf16(grid.rows * grid.cols, 1, 0.02), subject.source.span().begin());
  return subject;
}

nlohmann::ordered_json labels(const char* name, Layout layout, const Subject& subject, int threads) {
  return {{"name", name},
          {"layout", layout_text(layout)},
          {"matrix", shape_text(subject.grid.rows, subject.grid.cols)},
          {"threads", threads}};
}

void copy(std::span<const uint16_t> from, int threads, std::span<uint16_t> to) {
  parallel_for(from.size(), uint64_t{1} << 19, threads, [&](uint64_t begin, uint64_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, 2 * (end - begin));
  });
}

// A hash is serial, so two threads hash two halves: what several tensors at once would give.
void hash(ByteSpan bytes, int threads) {
  const size_t part = bytes.size() / static_cast<size_t>(threads);
  parallel_for(static_cast<uint64_t>(threads), 1, threads,
               [&](uint64_t begin, uint64_t) { (void)sha256_hex(bytes.subspan(begin * part, part)); });
}

}  // namespace

void bench_decode(const Options& options, const Print& print) {
  Subject subject = make_subject(options);
  Values copied(subject.values().size());
  for (const Layout layout : options.layouts) {
    const AlignedBuffer pack = pack_or_exit(subject.values(), subject.grid, layout);
    for (const int threads : options.threads) {
      const auto measured = compare(
          options.rounds, [&](int) { copy(subject.values(), threads, copied.span()); },
          [&](int) { check_or_exit(decode_tensor(pack.bytes(), threads, subject.out())); });
      print(result_line(labels("cpu.decode", layout, subject, threads), "memcpy of the bf16 bytes", measured,
                        static_cast<double>(subject.source.memory.bytes().size()),
                        {RatioOf::kRate, layout == Layout::kFast ? 0.5 : 0.12}));
    }
  }
}

void bench_pack(const Options& options, const Print& print) {
  Subject subject = make_subject(options);
  for (const Layout layout : options.layouts) {
    for (const int threads : options.threads) {
      AlignedBuffer pack;  // taken over by the next, as when the tensors of a checkpoint are packed
      const auto measured = compare(
          std::min(options.rounds, 5), [&](int) { hash(subject.source.memory.bytes(), threads); },
          [&](int) {
            pack = pack_or_exit(subject.values(), subject.grid, layout, threads, std::move(pack));
            hash(subject.source.memory.bytes(), threads);
            const auto same = decodes_to(pack.bytes(), threads, subject.values());
            check_or_exit(same ? Result<void>(Ok{}) : same.error());
            if (!same.value()) check_or_exit(mismatch("decoded values differ"));
          });
      print(result_line(labels("cpu.pack", layout, subject, threads), "sha256 of the bf16 bytes", measured,
                        static_cast<double>(subject.source.memory.bytes().size()),
                        {RatioOf::kRate, layout == Layout::kFast ? 0.30 : 0.15}));
    }
  }
}

void bench_verify(const Options& options, const Print& print) {
  Subject subject = make_subject(options);
  for (const Layout layout : options.layouts) {
    const AlignedBuffer pack = pack_or_exit(subject.values(), subject.grid, layout);
    for (const int threads : options.threads) {
      const auto measured = compare(
          options.rounds, [&](int) { hash(subject.source.memory.bytes(), threads); },
          [&](int) {
            check_or_exit(decode_tensor_checked(pack.bytes(), threads, subject.out()));
            hash(subject.decoded.memory.bytes(), threads);
          });
      print(result_line(labels("cpu.verify", layout, subject, threads), "sha256 of the bf16 bytes", measured,
                        static_cast<double>(subject.source.memory.bytes().size()),
                        {RatioOf::kRate, layout == Layout::kFast ? 0.6 : 0.4}));
    }
  }
}

}  // namespace glyd::bench
