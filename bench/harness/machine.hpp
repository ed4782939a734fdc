// machine.hpp - what a benchmark ran on, for the head line of its results.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace glyd::bench {

// {"bench", "date", "command", "commit", "cpu", "cpus", "isa", "kernel", "compiler", "load"}; the commit is that of the
// working directory, with "+" behind it if tracked files differ from it.
nlohmann::ordered_json head_line(const std::string& bench, const std::vector<std::string>& command,
                                 const std::string& isa);

}  // namespace glyd::bench
