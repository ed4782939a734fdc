// status.cpp - glyd/status.h.
#include "glyd/status.h"

#include "base/status_text.hpp"
#include "capi/guard.hpp"

namespace glyd::capi {
namespace {

thread_local std::string last_error;

}  // namespace

Status fail(const Error& error) noexcept {
  try {
    last_error = error.message;
  } catch (...) {
    last_error.clear();
  }
  return error.status;
}

}  // namespace glyd::capi

extern "C" {

const char* glyd_status_text(glyd_status status) noexcept { return glyd::status_text(status); }

const char* glyd_last_error(void) noexcept { return glyd::capi::last_error.c_str(); }
const char* glyd_version(void) noexcept { return GLYD_VERSION; }
uint32_t glyd_abi_version(void) noexcept { return GLYD_ABI_VERSION; }

}  // extern "C"
