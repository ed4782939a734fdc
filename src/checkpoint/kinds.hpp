// kinds.hpp - what a matrix is for, by its name: how sizes groups them.
#pragma once

#include <string_view>

namespace glyd {

// "embedding", "attention", "mlp", "experts", "head" or "other".
std::string_view kind_of(std::string_view tensor);

}  // namespace glyd
