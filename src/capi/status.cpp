// status.cpp - glyd/status.h.
#include "glyd/status.h"

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

const char* glyd_status_text(glyd_status status) noexcept {
  switch (status) {
    case GLYD_OK: return "ok";
    case GLYD_ERROR_INVALID_ARGUMENT: return "invalid argument";
    case GLYD_ERROR_CORRUPT: return "corrupt data";
    case GLYD_ERROR_MISMATCH: return "data differs";
    case GLYD_ERROR_UNSUPPORTED: return "not supported here";
    case GLYD_ERROR_FOREIGN_FORMAT: return "foreign or newer format";
    case GLYD_ERROR_OUT_OF_MEMORY: return "out of memory";
    case GLYD_ERROR_IO: return "input/output error";
    case GLYD_ERROR_NOT_FOUND: return "not found";
    case GLYD_ERROR_EXISTS: return "exists already";
    case GLYD_ERROR_BUSY: return "busy";
    case GLYD_ERROR_BUFFER_TOO_SMALL: return "buffer too small";
    case GLYD_ERROR_CANCELLED: return "cancelled";
    case GLYD_ERROR_INTERNAL: return "internal error";
  }
  return "unknown status";
}

const char* glyd_last_error(void) noexcept { return glyd::capi::last_error.c_str(); }
const char* glyd_version(void) noexcept { return GLYD_VERSION; }
uint32_t glyd_abi_version(void) noexcept { return GLYD_ABI_VERSION; }

}  // extern "C"
