#include "base/status_text.hpp"

namespace glyd {

const char* status_text(glyd_status status) {
  switch (status) {
    case GLYD_OK:
      return "ok";
    case GLYD_ERROR_INVALID_ARGUMENT:
      return "invalid argument";
    case GLYD_ERROR_CORRUPT:
      return "corrupt data";
    case GLYD_ERROR_MISMATCH:
      return "data differs";
    case GLYD_ERROR_UNSUPPORTED:
      return "not supported here";
    case GLYD_ERROR_FOREIGN_FORMAT:
      return "foreign or newer format";
    case GLYD_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case GLYD_ERROR_IO:
      return "input/output error";
    case GLYD_ERROR_NOT_FOUND:
      return "not found";
    case GLYD_ERROR_EXISTS:
      return "exists already";
    case GLYD_ERROR_BUSY:
      return "busy";
    case GLYD_ERROR_BUFFER_TOO_SMALL:
      return "buffer too small";
    case GLYD_ERROR_CANCELLED:
      return "cancelled";
    case GLYD_ERROR_INTERNAL:
      return "internal error";
  }
  return "unknown status";
}

}  // namespace glyd
