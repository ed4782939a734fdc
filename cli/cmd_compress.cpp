// cmd_compress.cpp - glyd compress [FILE...], glyd --max FILE -o OUT.
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <memory>
#include <nlohmann/json.hpp>

#include "codec_verb.hpp"
#include "report.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct CompressArguments {
  std::vector<std::string> sources;
  TargetArguments target;
  std::string level = "max", unit;
  bool level_default = false, level_max = false, level_ultra = false, reach_far = false;
  int threads = 0;
};

constexpr uint64_t kLeastUnit = 128 << 10, kMostUnit = 1 << 30, kLongUnit = 32 << 20;
constexpr const char* kHelp = "glyd compress --help";

// The options of all files, or a usage error's message.
std::string read_arguments(const CompressArguments& arguments, const Common& common, glyd_compress_options& options) {
  const int flags = arguments.level_default + arguments.level_max + arguments.level_ultra;
  if (flags > 1) return "--default, --max and --ultra: choose one";
  const std::string level = arguments.level_default ? "default"
                            : arguments.level_max   ? "max"
                            : arguments.level_ultra ? "ultra"
                                                    : arguments.level;
  if (glyd_level_from_name(level.c_str(), &options.level) != GLYD_OK) return glyd_last_error();
  if (!arguments.unit.empty() && !parse_bytes(arguments.unit, options.unit_bytes))
    return fmt::format("--unit {}: not a size such as 1MiB", arguments.unit);
  if (!arguments.unit.empty() &&
      (!std::has_single_bit(options.unit_bytes) || options.unit_bytes < kLeastUnit || options.unit_bytes > kMostUnit))
    return fmt::format("--unit {}: not a power of two from 128KiB to 1GiB (KB is 1000 bytes, KiB 1024)",
                       arguments.unit);
  if (arguments.reach_far && !arguments.unit.empty())
    return "--long and --unit both say how large units are: choose one (--long is --unit 32MiB)";
  if (arguments.reach_far && options.level == GLYD_LEVEL_DEFAULT)
    return "--long: level default looks back 64KiB in units of any size; take --max";
  if (arguments.reach_far) options.unit_bytes = kLongUnit;
  uint64_t bound = 0;
  if (glyd_compress_bound(0, &options, &bound) != GLYD_OK) return glyd_last_error();
  const TargetArguments& target = arguments.target;
  if (target.standard(arguments.sources) && ::isatty(STDOUT_FILENO) != 0 && !target.overwrite)
    return "a terminal cannot show compressed bytes: send them to a file or a pipe (--force does it all the same)";
  return target_mistake(target, arguments.sources, common);
}

Outcome compress_one(const std::string& path, const CompressArguments& arguments, const glyd_compress_options& options,
                     const Common& common, CopyResult& result) {
  InputFile source;
  if (Outcome opened = source.open(path); !opened.ok()) return opened;
  const TargetArguments& target = arguments.target;
  result.source = path;
  result.target = target.standard(arguments.sources) ? "-"
                  : !target.output.empty()           ? target.output
                                                     : path + kFrameSuffix;
  OutputFile output;
  const OutputOptions how{.overwrite = target.overwrite, .durable = target.removes_source()};
  if (Outcome opened = output.open(result.target, source, how); !opened.ok()) return opened;
  if (Outcome done = compress_file(source, output, options, common, result); !done.ok()) return done;
  if (Outcome finished = output.finish(source); !finished.ok()) return finished;
  return remove_source(source, target);
}

int compress(const CompressArguments& arguments, const Common& common) {
  glyd_compress_options options{};
  options.struct_size = sizeof options;
  options.threads = arguments.threads;
  if (const std::string mistake = read_arguments(arguments, common, options); !mistake.empty())
    return usage_error("compress: " + mistake, kHelp);
  std::vector<std::string> files;
  const Outcome listed = list_sources(arguments.sources, arguments.target.recursive, Take::kPlainFiles, files);
  if (!listed.ok()) return report_failure(listed);

  const Stopwatch all;
  std::vector<CopyResult> results;
  const int code = for_each_source(files, [&](const std::string& path) {
    const Stopwatch one;
    CopyResult result;
    const Outcome done = compress_one(path, arguments, options, common, result);
    if (!done.ok()) return done;
    if (!common.json && !common.quiet && result.target != "-") {
      std::fputs(fmt::format("compressed {} to {}: {} in {}, {} ({})\n", shown_source(result.source), result.target,
                             format_bytes(result.content_bytes), format_bytes(result.frame_bytes),
                             format_percent(result.frame_bytes, result.content_bytes), format_seconds(one.seconds()))
                     .c_str(),
                 stdout);
    }
    results.push_back(std::move(result));
    return done;
  });
  if (common.json && code == kExitDone) print_document(results_document(results, all.seconds()));
  return code;
}

}  // namespace

void declare_compress(Verb& verb) {
  auto arguments = std::make_shared<CompressArguments>();
  verb.summary = "compress files: any kind, three levels";
  verb.description =
      "Compresses each FILE into a frame of its own, FILE.glyd, which `glyd decompress` gives back bit for bit and any "
      "part of which can be read by itself. Without FILE, or for -, it reads standard input and writes standard "
      "output.";
  verb.openers = {"--max", "--default", "--ultra"};
  verb.positional("FILE", arguments->sources, "what to compress; - is standard input", Offer::kPaths);
  verb.optional_last();
  verb.option("-l,--level", arguments->level, "NAME",
              "level: default (the quickest), max (unless another is asked for) or ultra (the smallest)",
              Offer::kChoices, {"default", "max", "ultra"});
  verb.flag("--default", arguments->level_default, "the same as --level default");
  verb.flag("--max", arguments->level_max, "the same as --level max");
  verb.flag("--ultra", arguments->level_ultra, "the same as --level ultra");
  verb.flag("--long", arguments->reach_far,
            "look further back: units of 32MiB at max too, for fewer bytes; threads and ranges then go by those");
  declare_target(verb, arguments->target, "FILE.glyd");
  verb.option(
      "--unit", arguments->unit, "SIZE",
      "content of a unit, a power of two from 128KiB to 1GiB: what is decoded by itself (default 4MiB, max 8MiB, "
      "ultra 32MiB)");
  verb.codec_threads_option(arguments->threads);
  verb.examples = {"glyd compress model.tar", "glyd --ultra model.tar -o model.tar.glyd",
                   "tar c my-folder | glyd compress -o my-folder.tar.glyd", "glyd compress -r my-folder --rm"};
  verb.notes = {
      "FILE.glyd appears only when it is whole, with the permissions and the time of FILE. The source is never written "
      "to, and an output that is the source, by whatever name or link, is refused. Work goes on in "
      ".FILE.glyd.glyd-staging beside it, which is taken away after an error or Ctrl-C; what a killed run left there "
      "is taken over by the next one to the same output.",
      "The bytes are the same at any number of threads. With several files, one that fails is reported and the others "
      "are done; the exit status is that of the first failure."};
  verb.run = [arguments](const Common& common) { return compress(*arguments, common); };
}

}  // namespace glyd::cli
