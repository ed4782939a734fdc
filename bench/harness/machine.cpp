#include "harness/machine.hpp"

#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

namespace glyd::bench {
namespace {

std::string output_of(const char* command) {
  std::string text;
  FILE* pipe = ::popen(command, "r");
  if (pipe == nullptr) return text;
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  ::pclose(pipe);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string commit() {
  const std::string hash = output_of("git rev-parse --short=12 HEAD 2>/dev/null");
  if (hash.empty()) return "unknown";
  return output_of("git status --porcelain --untracked-files=no 2>/dev/null").empty() ? hash : hash + "+";
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  const std::string release = name.release;  // the version alone: what follows names a distribution or a host
  return std::string(name.sysname) + " " + release.substr(0, release.find('.', release.find('.') + 1));
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

nlohmann::ordered_json head_line(const std::string& bench, const std::vector<std::string>& command,
                                 const std::string& isa) {
  double load[1] = {-1};
  (void)::getloadavg(load, 1);
  return {{"bench", bench},     {"date", utc_now()},  {"command", joined(command)},
          {"commit", commit()}, {"cpu", cpu_model()}, {"cpus", std::thread::hardware_concurrency()},
          {"isa", isa},         {"kernel", kernel()}, {"compiler", "g++ " __VERSION__},
          {"load", load[0]}};
}

}  // namespace glyd::bench
