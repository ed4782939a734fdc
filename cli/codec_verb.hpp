// codec_verb.hpp - what the verbs of the codec share: their target's rules, their result's text.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "codec_copy.hpp"
#include "source_list.hpp"
#include "verb.hpp"

namespace glyd::cli {

struct TargetArguments {
  std::string output;  // -o; empty: beside the source
  bool to_stdout = false, recursive = false, overwrite = false, remove = false, keep = false, no_sparse = false;

  // -o -, -c, or nothing named: a pipe to a pipe.
  bool standard(const std::vector<std::string>& sources) const;
  bool removes_source() const { return remove && !keep; }
};

// The options -o, -c, -r, -f, -k and --rm.
void declare_target(Verb& verb, TargetArguments& target, const std::string& beside);
// The options -M and -t of decoding.
void declare_decoding(Verb& verb, std::string& memory, int& threads);
// What --memory says, into `options`; false after a usage error was reported.
bool read_memory(const std::string& memory, const std::string& verb, glyd_decompress_options& options);

// What makes no sense together; empty if all is well.
std::string target_mistake(const TargetArguments& target, const std::vector<std::string>& sources,
                           const Common& common);

// Removes what has been compressed or decompressed, if it was asked for.
Outcome remove_source(const InputFile& source, const TargetArguments& target);

// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// {"files": [...], "content_bytes": n, "frame_bytes": n, "seconds": s}
nlohmann::ordered_json results_document(const std::vector<CopyResult>& results, double seconds);
void print_document(const nlohmann::ordered_json& document);

// A source as people know it: "standard input" for "-".
std::string shown_source(const std::string& path);

}  // namespace glyd::cli
