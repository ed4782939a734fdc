// cmd_test.cpp - glyd test [FILE...].
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "codec_verb.hpp"
#include "report.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct TestArguments {
  std::vector<std::string> sources;
  std::string memory;
  int threads = 0;
  bool recursive = false;
};

int test(const TestArguments& arguments, const Common& common) {
  glyd_decompress_options options{};
  options.struct_size = sizeof options;
  options.threads = arguments.threads;
  if (!read_memory(arguments.memory, "test", options)) return kExitUsage;
  if (arguments.sources.empty() && ::isatty(STDIN_FILENO) != 0)
    return usage_error("test: name a file, or send something through a pipe", "glyd test --help");
  std::vector<std::string> files;
  const Outcome listed = list_sources(arguments.sources, arguments.recursive, Take::kFrames, files);
  if (!listed.ok()) return report_failure(listed);

  const Stopwatch all;
  std::vector<CopyResult> results;
  const int code = for_each_source(files, [&](const std::string& path) {
    const Stopwatch one;
    InputFile source;
    if (Outcome opened = source.open(path); !opened.ok()) return opened;
    CopyResult result{.source = path};
    if (Outcome done = decompress_file(source, nullptr, options, common, result); !done.ok()) return done;
    if (!common.json && !common.quiet) {
      std::fputs(fmt::format("ok: {}: {} of content in {}, every check passed ({})\n", shown_source(path),
                             format_bytes(result.content_bytes), format_bytes(result.frame_bytes),
                             format_seconds(one.seconds()))
                     .c_str(),
                 stdout);
    }
    results.push_back(std::move(result));
    return Outcome{};
  });
  if (common.json && code == kExitDone) {
    nlohmann::ordered_json document = results_document(results, all.seconds());
    document["ok"] = true;
    print_document(document);
  }
  return code;
}

}  // namespace

void declare_test(Verb& verb) {
  auto arguments = std::make_shared<TestArguments>();
  verb.summary = "decode compressed files and check everything, writing nothing";
  verb.description =
      "Decodes each FILE in memory and compares every check: of each unit's bytes, of its content, of the whole, and "
      "that the end is there. No file is written or removed.";
  verb.positional("FILE", arguments->sources, "files made by `glyd compress`; - is standard input", Offer::kPaths);
  verb.optional_last();
  verb.flag("-r,--recursive", arguments->recursive, "take the .glyd files in folders too");
  declare_decoding(verb, arguments->memory, arguments->threads);
  verb.examples = {"glyd test model.tar.glyd", "glyd test -r my-folder --quiet && echo whole"};
  verb.run = [arguments](const Common& common) { return test(*arguments, common); };
}

}  // namespace glyd::cli
