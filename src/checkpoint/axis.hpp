// axis.hpp - which tensors a model's own code multiplies by as [in, out], so that their reduction axis is the one
// before the last.
#pragma once

#include <cstddef>
#include <string_view>

namespace glyd {

// True if the model code of `model_type` (config.json) uses the tensor as [in, out] (2-D) or [experts, in, out] (3-D).
// False for everything not known.
bool is_stored_in_out(std::string_view model_type, std::string_view tensor, size_t dimensions);

}  // namespace glyd
