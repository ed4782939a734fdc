// bench_main.cpp - glyd_bench_cpu: the library's speed on this CPU as JSON lines. See bench/README.md.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>

#include "base/cpu.hpp"
#include "cpu_bench.hpp"
#include "harness/machine.hpp"

namespace glyd::bench {

const char* layout_text(Layout layout) {
  return layout == Layout::kFast ? "fast" : layout == Layout::kSmall ? "small" : "raw";
}
std::string shape_text(uint64_t rows, uint64_t cols) { return std::to_string(rows) + "x" + std::to_string(cols); }

namespace {

struct Group {
  const char* name;
  void (*run)(const Options&, const Print&);
};
constexpr Group kGroups[] = {{"decode", bench_decode},
                             {"pack", bench_pack},
                             {"verify", bench_verify},
                             {"linear", bench_products},
                             {"parts", bench_parts}};

int run(int argc, char** argv) {
  Options options;
  std::string out_path, commit;
  std::vector<std::string> only = {"decode", "pack", "verify", "linear"};
  CLI::App app{"Measures libglyd on this CPU, each subject beside its baseline, as JSON lines"};
  const std::map<std::string, Layout> layouts = {{"fast", Layout::kFast}, {"small", Layout::kSmall}};
  app.add_option("--only", only, "groups to run")
      ->delimiter(',')
      ->check(CLI::IsMember({"decode", "pack", "verify", "linear", "parts"}));
  app.add_option("--rounds", options.rounds, "rounds a result")->check(CLI::Range(1, 1000));
  app.add_option("--rows", options.rows, "rows of a product's matrix")->check(CLI::Range(1, 1 << 20));
  app.add_option("--cols", options.cols, "columns of a product's matrix")->check(CLI::Range(1, 1 << 20));
  app.add_option("--pack-rows", options.pack_rows, "rows of the matrix that is packed")->check(CLI::Range(1, 1 << 20));
  app.add_option("--pack-cols", options.pack_cols, "its columns")->check(CLI::Range(1, 1 << 20));
  app.add_option("--matrices", options.matrices, "matrices that products rotate through")->check(CLI::Range(1, 64));
  app.add_option("--threads", options.threads, "numbers of threads")->delimiter(',')->check(CLI::Range(1, 1024));
  app.add_option("--tokens", options.tokens, "numbers of tokens")->delimiter(',')->check(CLI::Range(1, 1 << 16));
  app.add_option("--layouts", options.layouts, "layouts")->delimiter(',')->transform(CLI::CheckedTransformer(layouts));
  app.add_option("--commit", commit, "what this was built from, where it does not run in a checkout of that");
  app.add_option("--out", out_path, "also write the lines to this file");
  CLI11_PARSE(app, argc, argv);

  std::ofstream out;
  if (!out_path.empty()) {
    out.open(out_path);
    if (!out) return std::fprintf(stderr, "glyd_bench_cpu: cannot write %s\n", out_path.c_str()), 1;
  }
  const Print print = [&](const nlohmann::ordered_json& line) {
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
    if (out.is_open()) out << line.dump() << std::endl;
  };
  nlohmann::ordered_json head = head_line("glyd_bench_cpu", {argv, argv + argc}, isa_name(cpu_isa()));
  if (!commit.empty()) head["commit"] = commit;
  print(head);
  const Print print_with_isa = [&](nlohmann::ordered_json line) {
    line["isa"] = isa_name(cpu_isa());
    print(line);
  };
  for (const Group& group : kGroups) {
    if (std::ranges::find(only, group.name) != only.end()) group.run(options, print_with_isa);
  }
  return 0;
}

}  // namespace
}  // namespace glyd::bench

int main(int argc, char** argv) { return glyd::bench::run(argc, argv); }
