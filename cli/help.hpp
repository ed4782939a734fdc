// help.hpp - help pages: of the program and of one verb.
#pragma once

#include <string>

#include "verb.hpp"

namespace glyd::cli {

std::string overview();              // `glyd --help`
std::string page(const Verb& verb);  // `glyd VERB --help`

// "glyd pack [OPTIONS] SRC OUT"
std::string usage_line(const Verb& verb);

}  // namespace glyd::cli
