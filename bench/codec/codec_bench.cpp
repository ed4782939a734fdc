// codec_bench.cpp - bytes and rates of each level beside its peer, over the files of a folder; by turns, one thread,
// one process.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/cpu.hpp"
#include "harness/compare.hpp"
#include "harness/machine.hpp"
#include "peers.hpp"

namespace glyd::bench {
namespace {

using nlohmann::ordered_json;

struct Level {
  std::string name, peer;
  double bytes_at_most, write_at_least, read_at_least;  // of the peer's, as geometric means
};
const Level kLevels[] = {
    {"default", "lz4-1", 0.95, 0.7, 0.9}, {"max", "zstd-3", 0.97, 0.9, 1.1}, {"ultra", "zstd-19", 0.97, 1.0, 1.0}};

struct Totals {
  double bytes = 0, write = 0, read = 0;
  int files = 0, larger = 0;
};

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

ordered_json rates(const Comparison& measured, double megabytes) {
  const auto rate = [&](const std::vector<double>& seconds) { return megabytes / spread_of(seconds).min; };
  const Spread ratio = measured.ratio(RatioOf::kRate);
  return {{"mb_s", rate(measured.subject_s)},
          {"peer_mb_s", rate(measured.baseline_s)},
          {"ratio", {{"min", ratio.min}, {"median", ratio.median}, {"max", ratio.max}}}};
}

Bytes load(const std::filesystem::path& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  Bytes bytes(std::min<size_t>(most, std::filesystem::file_size(path)));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// One file at one level; `counts` says whether it is one of those that the means are taken over.
ordered_json measure(const Level& level, const std::string& file, const Bytes& raw, double seconds, bool counts,
                     Totals& totals) {
  const auto subject = make_glyd(level.name), peer = make_peer(level.peer);
  Bytes stored(subject->bound(raw.size())), peer_stored(peer->bound(raw.size())), back(raw.size());
  size_t bytes = 0, peer_bytes = 0;
  const double once = seconds_of([&] { bytes = subject->compress(raw, stored); });
  // One round and no warm-up where that takes seconds.
  const int write_rounds = std::clamp(static_cast<int>(seconds / 4 / std::max(once, 1e-4)), 1, 25);
  const auto write_peer = [&] { peer_bytes = peer->compress(raw, peer_stored); };
  const Comparison write =
      once > 1 ? Comparison{{once}, {seconds_of(write_peer)}}
               : compare(
                     write_rounds, [&](int) { write_peer(); }, [&](int) { bytes = subject->compress(raw, stored); });
  const double read_once = seconds_of([&] { subject->decompress(stored.data(), bytes, back); });
  if (back != raw) throw std::runtime_error(file + ": does not come back at level " + level.name);
  const int read_rounds = std::clamp(static_cast<int>(seconds / 4 / std::max(read_once, 1e-4)), 3, 50);
  const Comparison read = compare(
      read_rounds, [&](int) { peer->decompress(peer_stored.data(), peer_bytes, back); },
      [&](int) { subject->decompress(stored.data(), bytes, back); });
  if (counts) {
    totals.bytes += std::log(static_cast<double>(bytes) / static_cast<double>(peer_bytes));
    totals.write += std::log(write.ratio(RatioOf::kRate).median);
    totals.read += std::log(read.ratio(RatioOf::kRate).median);
    ++totals.files;
  }
  // What is stored as it is, is read at memory's rate or not far from it.
  ordered_json against_memory;
  if (bytes > raw.size() / 10 * 8) {
    const Comparison copy = compare(
        read_rounds, [&](int) { std::copy(raw.begin(), raw.end(), back.begin()); },
        [&](int) { subject->decompress(stored.data(), bytes, back); });
    const Spread ratio = copy.ratio(RatioOf::kRate);
    against_memory = {{"min", ratio.min}, {"median", ratio.median}, {"max", ratio.max}};
  }
  totals.larger += bytes > peer_bytes + 64 + raw.size() / 2000;
  const double megabytes = static_cast<double>(raw.size()) / 1e6;
  ordered_json line = {{"name", "codec." + level.name},
                       {"file", file},
                       {"raw_bytes", raw.size()},
                       {"bytes", bytes},
                       {"peer", level.peer},
                       {"peer_bytes", peer_bytes},
                       {"bytes_ratio", static_cast<double>(bytes) / static_cast<double>(peer_bytes)},
                       {"in_mean", counts},
                       {"write", rates(write, megabytes)},
                       {"read", rates(read, megabytes)}};
  if (!against_memory.is_null()) line["read_memcpy_ratio"] = against_memory;
  return line;
}

// Two threads beside one, on the files in a row, again and again up to `megabytes`.
ordered_json measure_threads(const std::string& level, const std::vector<std::filesystem::path>& files,
                             double megabytes, int rounds) {
  const auto bytes = static_cast<size_t>(megabytes * 1e6);
  Bytes raw;
  for (size_t i = 0; raw.size() < bytes; ++i) {
    const Bytes file = load(files[i % files.size()], bytes - raw.size());
    raw.insert(raw.end(), file.begin(), file.end());
  }
  const auto one = make_glyd(level, 1), two = make_glyd(level, 2);
  Bytes stored(one->bound(raw.size())), same(two->bound(raw.size())), back(raw.size());
  size_t one_bytes = 0, two_bytes = 0;
  const auto ratio_of = [&](const Comparison& measured) {
    const Spread ratio = measured.ratio(RatioOf::kRate);
    return ordered_json{{"min", ratio.min}, {"median", ratio.median}, {"max", ratio.max}};
  };
  const Comparison write = compare(
      rounds, [&](int) { one_bytes = one->compress(raw, stored); }, [&](int) { two_bytes = two->compress(raw, same); });
  if (one_bytes != two_bytes ||
      !std::equal(stored.begin(), stored.begin() + static_cast<ptrdiff_t>(one_bytes), same.begin()))
    throw std::runtime_error("two threads write other bytes than one");
  const Comparison read = compare(
      std::max(rounds, 3), [&](int) { one->decompress(stored.data(), one_bytes, back); },
      [&](int) { two->decompress(stored.data(), one_bytes, back); });
  const ordered_json write_ratio = ratio_of(write), read_ratio = ratio_of(read);
  const bool met = write_ratio["median"].get<double>() >= 1.8 && read_ratio["median"].get<double>() >= 1.8;
  return {{"name", "codec." + level + ".threads"},
          {"threads", 2},
          {"raw_bytes", raw.size()},
          {"write_ratio", write_ratio},
          {"read_ratio", read_ratio},
          {"at_least", {{"write_ratio", 1.8}, {"read_ratio", 1.8}}},
          {"met", met}};
}

ordered_json summary(const Level& level, const Totals& totals) {
  const double files = std::max(totals.files, 1);
  const double bytes = std::exp(totals.bytes / files), write = std::exp(totals.write / files),
               read = std::exp(totals.read / files);
  return {{"name", "codec." + level.name + ".all"},
          {"peer", level.peer},
          {"files", totals.files},
          {"larger_files", totals.larger},
          {"bytes_ratio", bytes},
          {"write_ratio", write},
          {"read_ratio", read},
          {"at_most", {{"bytes_ratio", level.bytes_at_most}, {"larger_files", 0}}},
          {"at_least", {{"write_ratio", level.write_at_least}, {"read_ratio", level.read_at_least}}},
          {"met", bytes <= level.bytes_at_most && totals.larger == 0 && write >= level.write_at_least &&
                      read >= level.read_at_least}};
}

int run(int count, char** arguments) {
  CLI::App app("Bytes and rates of glyd's codec beside lz4 -1, zstd -3 and zstd -19");
  std::filesystem::path corpus, out;
  std::vector<std::string> only_levels = {"default", "max", "ultra"}, only_files, sizes_of;
  double seconds = 4, megabytes = 1e6;
  double thread_megabytes = 0;
  bool bare = false;
  app.add_option("--corpus", corpus, "folder of files (bench/codec/corpus.sh makes it)")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--levels", only_levels, "default, max, ultra")->delimiter(',');
  app.add_option("--files", only_files, "only these")->delimiter(',');
  app.add_option("--sizes", sizes_of, "further peers whose bytes alone are listed, such as xz-9")->delimiter(',');
  app.add_option("--seconds", seconds, "about this long for a file and level");
  app.add_option("--megabytes", megabytes, "only the first of each file");
  app.add_option("--threads-megabytes", thread_megabytes,
                 "instead: two threads beside one, on so much of the files in a row");
  app.add_flag("--bare-peers", bare, "peers without checks");
  app.add_option("--out", out, "JSON lines (default: standard output)");
  CLI11_PARSE(app, count, arguments);

  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && (only_files.empty() || std::ranges::count(only_files, name) != 0))
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::ofstream target;
  if (!out.empty()) target.open(out);
  const auto emit = [&](const ordered_json& line) {
    if (out.empty())
      std::printf("%s\n", line.dump().c_str());
    else
      target << line.dump() << std::endl;
  };
  emit(head_line("codec", {arguments, arguments + count}, isa_name(cpu_isa())));
  for (Level level : kLevels) {
    if (std::ranges::count(only_levels, level.name) == 0) continue;
    if (thread_megabytes > 0) {
      emit(measure_threads(level.name, files, thread_megabytes, level.name == "ultra" ? 1 : 3));
      continue;
    }
    if (bare) level.peer += "-bare";
    Totals totals;
    for (const auto& path : files) {
      const Bytes raw = load(path, static_cast<size_t>(megabytes * 1e6));
      const auto lz4 = make_peer("lz4-1");
      Bytes scratch(lz4->bound(raw.size()));
      const bool counts = static_cast<double>(lz4->compress(raw, scratch)) <= 0.9 * static_cast<double>(raw.size());
      ordered_json line = measure(level, path.filename().string(), raw, seconds, counts, totals);
      for (const std::string& name : sizes_of) {
        const auto peer = make_peer(name);
        scratch.resize(peer->bound(raw.size()));
        line["sizes"][name] = peer->compress(raw, scratch);
      }
      emit(line);
      std::fprintf(stderr, "%-8s %-14s bytes %.4f  write %.2f  read %.2f\n", level.name.c_str(),
                   path.filename().c_str(), line["bytes_ratio"].get<double>(),
                   line["write"]["ratio"]["median"].get<double>(), line["read"]["ratio"]["median"].get<double>());
    }
    emit(summary(level, totals));
  }
  return 0;
}

}  // namespace
}  // namespace glyd::bench

int main(int count, char** arguments) {
  try {
    return glyd::bench::run(count, arguments);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
