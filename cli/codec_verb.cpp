#include "codec_verb.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "report.hpp"
#include "units.hpp"

namespace glyd::cli {

std::string shown_source(const std::string& path) { return path == "-" ? "standard input" : path; }

bool TargetArguments::standard(const std::vector<std::string>& sources) const {
  const bool from_pipe = output.empty() && (sources.empty() || (sources.size() == 1 && sources[0] == "-"));
  return to_stdout || output == "-" || from_pipe;
}

void declare_target(Verb& verb, TargetArguments& target, const std::string& beside) {
  verb.option(
      "-o,--output", target.output, "PATH",
      "what to write; - is standard output. Unless given: " + beside + ", or standard output for standard input",
      Offer::kPaths);
  verb.flag("-c,--stdout", target.to_stdout, "write to standard output, as -o - does");
  verb.flag("-r,--recursive", target.recursive, "take the files in folders too, each by itself; links are left alone");
  verb.flag("-f,--overwrite,--force", target.overwrite, "replace files that are there already");
  verb.flag("-k,--keep", target.keep, "keep the sources, even with --rm; they are kept anyway without it");
  verb.flag("--rm", target.remove, "remove each source once its output is safely on the disk");
}

void declare_decoding(Verb& verb, std::string& memory, int& threads) {
  memory = kMemoryDefault;
  verb.option("-M,--memory", memory, "SIZE",
              fmt::format("most working memory, {} unless given, 0 for no limit; fewer threads are used to stay below",
                          kMemoryDefault));
  verb.codec_threads_option(threads);
}

bool read_memory(const std::string& memory, const std::string& verb, glyd_decompress_options& options) {
  if (parse_bytes(memory, options.memory_limit)) return true;
  usage_error(fmt::format("{}: --memory {}: not a size such as 512MiB or 2GB", verb, memory),
              fmt::format("glyd {} --help", verb));
  return false;
}

std::string target_mistake(const TargetArguments& target, const std::vector<std::string>& sources,
                           const Common& common) {
  const bool standard = target.standard(sources);
  const bool folder = target.recursive && std::any_of(sources.begin(), sources.end(), is_directory);
  if (!target.output.empty() && !standard && (sources.size() > 1 || folder))
    return "-o names one file, and there are several sources: leave it out, and each output lies beside its source";
  if (standard && common.json) return "--json is for standard output, which has the content: name a file with -o";
  if (standard && target.removes_source()) return "--rm needs an output file: what a pipe took may be lost";
  if (sources.empty() && ::isatty(STDIN_FILENO) != 0) return "name a file, or send something through a pipe";
  return "";
}

Outcome remove_source(const InputFile& source, const TargetArguments& target) {
  if (!target.removes_source() || !source.is_file()) return {};
  return ::unlink(source.name().c_str()) == 0 ? Outcome{} : system_failure("remove", source.name());
}

nlohmann::ordered_json results_document(const std::vector<CopyResult>& results, double seconds) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  uint64_t content = 0, frame = 0;
  for (const CopyResult& result : results) {
    nlohmann::ordered_json file{{"source", result.source}};
    if (!result.target.empty()) file["target"] = result.target;
    file["content_bytes"] = result.content_bytes;
    file["frame_bytes"] = result.frame_bytes;
    files.push_back(std::move(file));
    content += result.content_bytes;
    frame += result.frame_bytes;
  }
  return {{"files", std::move(files)}, {"content_bytes", content}, {"frame_bytes", frame}, {"seconds", seconds}};
}

void print_document(const nlohmann::ordered_json& document) {
  // Names of files may be no UTF-8: they are shown with replacement characters.
  std::fputs((document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n").c_str(), stdout);
}

}  // namespace glyd::cli
