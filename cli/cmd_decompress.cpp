// cmd_decompress.cpp - glyd decompress [FILE...], glyd -d FILE.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "codec_verb.hpp"
#include "report.hpp"
#include "salvage_file.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct DecompressArguments {
  std::vector<std::string> sources;
  TargetArguments target;
  std::string memory;
  int threads = 0;
  bool salvage = false, opener = false;
};

struct Decompressed {
  CopyResult copy;
  Salvaged salvaged;
};

Outcome name_target(const std::string& path, const DecompressArguments& arguments, std::string& target) {
  if (arguments.target.standard(arguments.sources)) {
    target = "-";
  } else if (!arguments.target.output.empty()) {
    target = arguments.target.output;
  } else if (has_frame_suffix(path) && path.size() > std::string(kFrameSuffix).size()) {
    target = path.substr(0, path.size() - std::string(kFrameSuffix).size());
  } else {
    return {GLYD_ERROR_INVALID_ARGUMENT,
            fmt::format("{} does not end in {}: name the output with -o", path, kFrameSuffix)};
  }
  return {};
}

std::string names_of(const std::vector<LostRange>& lost) {
  std::string text;
  for (const LostRange& range : lost)
    text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", range.begin, range.end);
  return text;
}

// Less than everything was found: what there is is kept, and the exit status tells.
Outcome salvage_verdict(const Decompressed& done) {
  const Salvaged& found = done.salvaged;
  if (found.complete) return {};
  const std::string what = found.lost.empty() ? "its end is missing, so nobody knows how much is lost behind it"
                                              : "lost: bytes " + names_of(found.lost) + " of the content";
  return {GLYD_ERROR_CORRUPT,
          fmt::format("{}: damaged: {} recovered; {}", done.copy.source, format_bytes(found.recovered_bytes), what)};
}

Outcome decompress_one(const std::string& path, const DecompressArguments& arguments,
                       const glyd_decompress_options& options, const Common& common, Decompressed& result) {
  InputFile source;
  if (Outcome opened = source.open(path); !opened.ok()) return opened;
  result.copy.source = path;
  const TargetArguments& target = arguments.target;
  if (Outcome named = name_target(path, arguments, result.copy.target); !named.ok()) return named;
  OutputFile output;
  const OutputOptions how{
      .overwrite = target.overwrite, .sparse = !target.no_sparse, .durable = target.removes_source()};
  if (Outcome opened = output.open(result.copy.target, source, how); !opened.ok()) return opened;
  if (arguments.salvage) {
    if (Outcome found = salvage_file(source, output, result.salvaged); !found.ok()) return found;
    if (result.salvaged.recovered_bytes == 0 && !result.salvaged.complete)
      return {GLYD_ERROR_CORRUPT, fmt::format("{}: nothing in it could be recovered", path)};
    result.copy.content_bytes = output.written();
    result.copy.frame_bytes = source.size();
    return output.finish(source);
  }
  if (Outcome done = decompress_file(source, &output, options, common, result.copy); !done.ok()) return done;
  if (Outcome finished = output.finish(source); !finished.ok()) return finished;
  return remove_source(source, target);
}

nlohmann::ordered_json document_of(const std::vector<Decompressed>& results, bool salvage, double seconds) {
  std::vector<CopyResult> copies;
  for (const Decompressed& result : results) copies.push_back(result.copy);
  nlohmann::ordered_json document = results_document(copies, seconds);
  for (size_t i = 0; salvage && i < results.size(); ++i) {
    const Salvaged& found = results[i].salvaged;
    nlohmann::ordered_json& file = document["files"][i];
    file["complete"] = found.complete;
    file["recovered_bytes"] = found.recovered_bytes;
    file["lost"] = nlohmann::ordered_json::array();
    for (const LostRange& range : found.lost) file["lost"].push_back({{"begin", range.begin}, {"end", range.end}});
  }
  return document;
}

std::string mistake_in(const DecompressArguments& arguments, const Common& common) {
  if (arguments.salvage && arguments.target.removes_source())
    return "--salvage and --rm: a damaged source is worth keeping";
  return target_mistake(arguments.target, arguments.sources, common);
}

int decompress(const DecompressArguments& arguments, const Common& common) {
  glyd_decompress_options options{};
  options.struct_size = sizeof options;
  options.threads = arguments.threads;
  if (!read_memory(arguments.memory, "decompress", options)) return kExitUsage;
  if (const std::string mistake = mistake_in(arguments, common); !mistake.empty())
    return usage_error("decompress: " + mistake, "glyd decompress --help");
  std::vector<std::string> files;
  const Outcome listed = list_sources(arguments.sources, arguments.target.recursive, Take::kFrames, files);
  if (!listed.ok()) return report_failure(listed);

  const Stopwatch all;
  std::vector<Decompressed> results;
  const int code = for_each_source(files, [&](const std::string& path) {
    const Stopwatch one;
    Decompressed result;
    const Outcome done = decompress_one(path, arguments, options, common, result);
    if (!done.ok()) return done;
    if (!common.json && !common.quiet && result.copy.target != "-") {
      std::fputs(fmt::format("decompressed {} to {}: {} ({})\n", shown_source(result.copy.source), result.copy.target,
                             format_bytes(result.copy.content_bytes), format_seconds(one.seconds()))
                     .c_str(),
                 stdout);
    }
    results.push_back(std::move(result));
    return arguments.salvage ? salvage_verdict(results.back()) : Outcome{};
  });
  // What was salvaged is a result though it is not all.
  const bool has_result = code == kExitDone || (arguments.salvage && !results.empty());
  if (common.json && has_result) print_document(document_of(results, arguments.salvage, all.seconds()));
  return code;
}

}  // namespace

void declare_decompress(Verb& verb) {
  auto arguments = std::make_shared<DecompressArguments>();
  verb.summary = "give back what was compressed, byte for byte";
  verb.description =
      "Decompresses FILE.glyd to FILE, checking every unit and the whole. Without FILE, or for -, it reads standard "
      "input and writes standard output. Frames that follow each other in a file are one content.";
  verb.openers = {"-d", "--decompress"};
  verb.positional("FILE", arguments->sources, "files made by `glyd compress`; - is standard input", Offer::kPaths);
  verb.optional_last();
  declare_target(verb, arguments->target, "FILE without .glyd");
  verb.flag("--salvage", arguments->salvage,
            "of a damaged or cut FILE, write every unit that is whole, with zeros where one is lost, and name the lost "
            "ranges; exit status 1 if there are any");
  verb.flag("--no-sparse", arguments->target.no_sparse, "write long runs of zeros; otherwise they become holes");
  declare_decoding(verb, arguments->memory, arguments->threads);
  verb.flag("-d,--decompress", arguments->opener, "does nothing here: `glyd -d` is `glyd decompress`");
  verb.examples = {"glyd decompress model.tar.glyd", "glyd -d model.tar.glyd -o model.tar",
                   "curl https://example.com/my.tar.glyd | glyd -d | tar x",
                   "glyd decompress --salvage damaged.glyd -o rescued"};
  verb.notes = {
      "The output appears only when every check has passed, with the permissions and the time of FILE, and never "
      "replaces a file unless --overwrite says so. To standard output, what lies before an error has been written when "
      "the error is found: mind the exit status.",
      "`glyd list` tells how large the content is before anything is decoded."};
  verb.run = [arguments](const Common& common) { return decompress(*arguments, common); };
}

}  // namespace glyd::cli
