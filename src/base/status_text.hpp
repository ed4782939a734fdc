// status_text.hpp - short names of status codes, for every library of the project.
#pragma once

#include "glyd/status.h"

namespace glyd {

// A static string, never null.
const char* status_text(glyd_status status);

}  // namespace glyd
