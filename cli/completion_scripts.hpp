// completion_scripts.hpp - completion scripts, written from the verbs' declarations.
#pragma once

#include <string>

namespace glyd::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace glyd::cli
