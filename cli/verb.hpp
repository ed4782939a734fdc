// verb.hpp - a verb: its arguments, help and completions, and the one function that runs it.
//
// A verb lives in one file, cmd_<verb>.cpp, which defines `void declare_<verb>(Verb&)`, and has one line in verbs.inc.
// The declaration names the arguments and sets `verb.run`, a function from parsed arguments to an exit code. Help,
// completions and suggestions follow from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace glyd::cli {

// Options that every verb has.
struct Common {
  bool json = false;
  bool quiet = false;
};

// What a shell offers for an argument.
enum class Offer { kNothing, kPaths, kDirectories, kChoices };

struct Argument {
  std::string names;       // "-o,--output" or "SRC"
  std::string value_name;  // "N"; empty for a flag
  std::string description;
  Offer offer = Offer::kNothing;
  std::vector<std::string> choices;
  bool positional = false;
  bool repeated = false;
  bool required = true;

  std::vector<std::string> spellings() const;  // {"-o", "--output"}
};

class Verb {
 public:
  Verb(std::string name, std::string group);
  ~Verb();
  Verb(const Verb&) = delete;
  Verb& operator=(const Verb&) = delete;

  std::string name, group;
  std::string summary;                // one line, for lists
  std::string description;            // a paragraph for --help
  std::vector<std::string> examples;  // whole command lines
  std::vector<std::string> notes;     // paragraphs after the options
  std::vector<std::string>
      openers;  // options that stand for the verb as first argument: `glyd -d X` is `glyd decompress -d X`
  std::function<int(const Common&)> run;

  // Arguments, in the order of the help page; `value` must live as long as the verb and keeps what it holds where
  // nothing is given.
  void positional(const std::string& word, std::string& value, const std::string& what, Offer offer,
                  std::vector<std::string> choices = {});
  void positional(const std::string& word, std::vector<std::string>& values, const std::string& what,
                  Offer offer);  // one or more
  void option(const std::string& names, std::string& value, const std::string& value_name, const std::string& what,
              Offer offer = Offer::kNothing, std::vector<std::string> choices = {});
  void option(const std::string& names, int& value, int least, int most, const std::string& what);
  void option(const std::string& names, uint64_t& value, uint64_t least, uint64_t most, const std::string& what);
  void require_last();   // the option just declared must be given
  void optional_last();  // the positional just declared may be left out
  void flag(const std::string& names, bool& value, const std::string& what);

  void common_options();  // --json and -q/--quiet; the registry adds them after the verb's own
  // The same in every verb that has them.
  void threads_option(int& threads);
  void revision_option(std::string& revision);
  void codec_threads_option(int& threads);  // also -T, as other compressors have it

  const std::vector<Argument>& arguments() const { return arguments_; }

  // Parses `words` (without program and verb) and runs. Help and usage errors are handled here.
  int parse_and_run(std::vector<std::string> words);

 private:
  // The first word that looks like an option and is none, with a suggestion; empty if all are known.
  std::string unknown_option(const std::vector<std::string>& words) const;
  int usage_error(const CLI::ParseError& error, const std::vector<std::string>& words) const;

  std::unique_ptr<CLI::App> app_;
  CLI::Option* last_ = nullptr;
  Common common_;
  std::vector<Argument> arguments_;
};

}  // namespace glyd::cli
