// staged_file.hpp - the one file being made: its name beside the target, its lock, and its removal by a signal.
#pragma once

#include <string>

#include "outcome.hpp"

namespace glyd::cli {

// "dir/.NAME.glyd-staging"; shorter where that would be too long a name.
std::string staging_path(const std::string& target);

// Opens it, empty, for us alone: GLYD_ERROR_BUSY while another process has it. What a killed run left there is taken
// over. Until forget_staging, SIGINT, SIGTERM and SIGHUP take it away and end the program at once: a unit of `ultra`
// takes many seconds, and nobody waits that long after Ctrl-C.
Outcome open_staging_file(const std::string& path, const std::string& target, int& descriptor);
void forget_staging();

// For a handler of another signal that ends the program: takes the file away, if one is being made.
void take_staging_away();

}  // namespace glyd::cli
