// main.cpp - the glyd program: finds the verb, runs it, and makes sure that what it printed arrived.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "glyd/status.h"
#include "help.hpp"
#include "registry.hpp"
#include "report.hpp"

namespace glyd::cli {
namespace {

int unknown_verb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) names.push_back(verb.name);
  const bool is_option = word.starts_with("-");
  const std::string meant = is_option ? nearest(word, {"--help", "--version"}) : nearest(word, names);
  std::string hint = meant.empty() ? "" : "; did you mean '" + meant + "'?";
  std::error_code error;
  if (hint.empty() && std::filesystem::is_regular_file(word, error))
    hint = ", but there is a file of this name: `glyd compress " + word + "` compresses it";
  if (hint.empty() && std::filesystem::is_directory(word, error))
    hint = ", but there is a directory of this name: `glyd pack " + word + " OUT` packs a model";
  return usage_error(fmt::format("unknown {} '{}'{}", is_option ? "option" : "verb", word, hint), "glyd --help");
}

int help(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    std::fputs(overview().c_str(), stdout);
    return kExitDone;
  }
  Verb* verb = find_verb(words[1]);
  return verb == nullptr ? unknown_verb(words[1]) : verb->parse_and_run({"--help"});
}

int run(std::vector<std::string> words) {
  if (words.empty()) {
    std::fputs(overview().c_str(), stderr);
    return kExitUsage;
  }
  const std::string& first = words.front();
  if (first == "--help" || first == "-h" || first == "help") return help(words);
  if (first == "--version" || first == "-V") {
    std::fputs(fmt::format("glyd {}\n", glyd_version()).c_str(), stdout);
    return kExitDone;
  }
  Verb* verb = find_verb(first);
  if (verb != nullptr) {
    words.erase(words.begin());
  } else {
    verb = find_opener(first.substr(0, first.find('=')));  // `glyd -d FILE`: the option stays, the verb is understood
  }
  return verb == nullptr ? unknown_verb(first) : verb->parse_and_run(std::move(words));
}

// A result that did not reach its file or disk is an error even where everything before went well.
int flush_output(int code) {
  const bool failed = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed) return code;
  print_error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  return code == kExitDone ? kExitIo : code;
}

// A standard stream that the shell closed (`>&-`) leaves its number to the next file that is opened, which would then
// be read, or printed into, in its place. /dev/null, open the other way round, keeps the number: using it fails as
// before.
void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

int guarded(std::vector<std::string> words) {
  try {
    return flush_output(run(std::move(words)));
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return kExitIo;
  } catch (const std::exception& exception) {
    print_error(fmt::format("{} (a bug in glyd: please report it with the command that shows it)", exception.what()));
    return kExitIo;
  }
}

}  // namespace
}  // namespace glyd::cli

int main(int argc, char** argv) {
  glyd::cli::keep_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of the write, which names the file
  return glyd::cli::guarded({argv + 1, argv + argc});
}
