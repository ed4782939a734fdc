// bench_main.hpp - main() of a benchmark whose only options are where its lines go and what it says of the source.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.hpp"

namespace glyd::bench {

inline std::string command_line(int argc, char** argv) {
  std::string command;
  for (int i = 0; i < argc; ++i) command += (i > 0 ? " " : "") + std::string(argv[i]);
  return command;
}

using BenchBody = Result<void> (*)(const std::string& command, const std::string& json, const std::string& commit);

inline int bench_main(int argc, char** argv, const char* name, const char* description, BenchBody body) {
  CLI::App app{description};
  std::string json, commit = "unknown";
  app.add_option("--json", json, "also write the lines to this file");
  app.add_option("--commit", commit, "what the head line says of the source");
  CLI11_PARSE(app, argc, argv);
  const auto result = body(command_line(argc, argv), json, commit);
  if (!result) fmt::print(stderr, "{}: {}\n", name, result.error().message);
  return result ? 0 : 1;
}

}  // namespace glyd::bench
