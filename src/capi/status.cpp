// status.cpp - glyd/status.h.
#include "glyd/status.h"

#include "base/guard.hpp"
#include "base/status_text.hpp"

extern "C" {

const char* glyd_status_text(glyd_status status) noexcept { return glyd::status_text(status); }

const char* glyd_last_error(void) noexcept { return glyd::capi::last_error(); }
const char* glyd_version(void) noexcept { return GLYD_VERSION; }
uint32_t glyd_abi_version(void) noexcept { return GLYD_ABI_VERSION; }

}  // extern "C"
