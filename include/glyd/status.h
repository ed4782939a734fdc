// status.h - status codes, error text, versions.
//
// Conventions of every function in include/glyd/:
//  1. It returns a glyd_status; values leave by out-parameters, which are written only on GLYD_OK unless the comment
//  says otherwise.
//  2. Nothing throws across this boundary and nothing prints.
//  3. Pointers are borrowed for the call, unless the comment says otherwise. Memory that the library gives has its own
//  free function.
//  4. Functions are safe to call from several threads at once as long as no two write the same memory.
//  5. Structs that may grow begin with `size_t struct_size`, which the caller sets to sizeof the struct it was compiled
//  with.
//     A member that the caller's struct is too old to have takes its default, which is all zeros.
#ifndef GLYD_STATUS_H
#define GLYD_STATUS_H

#include <stdint.h>

#include "glyd/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// Pinned for ever: a number never changes its meaning.
typedef enum glyd_status {
  GLYD_OK = 0,
  GLYD_ERROR_INVALID_ARGUMENT = 1,  // the call is wrong: a null pointer, an unknown option, a shape that does not fit
  GLYD_ERROR_CORRUPT = 2,           // the data breaks its format's rules, or its checksum
  GLYD_ERROR_MISMATCH = 3,        // two things that should be equal differ (verify against a source, decode after pack)
  GLYD_ERROR_UNSUPPORTED = 4,     // valid, but not by this build or on this machine
  GLYD_ERROR_FOREIGN_FORMAT = 5,  // another program's format, or a version this one does not read
  GLYD_ERROR_OUT_OF_MEMORY = 6,
  GLYD_ERROR_IO = 7,         // reading or writing failed (a full disk, a permission)
  GLYD_ERROR_NOT_FOUND = 8,  // a file, directory, repo or tensor is missing
  GLYD_ERROR_EXISTS = 9,     // the target is there already
  GLYD_ERROR_BUSY = 10,      // another process is writing the same target
  GLYD_ERROR_BUFFER_TOO_SMALL = 11,
  GLYD_ERROR_CANCELLED = 12,  // the progress callback asked to stop
  GLYD_ERROR_INTERNAL = 13    // a bug in this library; please report it
} glyd_status;

// A short name such as "corrupt data"; a static string, never null.
GLYD_API const char* glyd_status_text(glyd_status status) GLYD_NOEXCEPT;

// What went wrong in the last call on this thread that did not return GLYD_OK: names the place and, where there is one,
// the remedy. Valid until the thread's next call into the library. Never null; "" if nothing failed yet.
GLYD_API const char* glyd_last_error(void) GLYD_NOEXCEPT;

// Library version, "MAJOR.MINOR.PATCH"; a static string.
GLYD_API const char* glyd_version(void) GLYD_NOEXCEPT;

// Raised whenever a released signature, struct or number changes incompatibly. Compare with GLYD_ABI_VERSION.
#define GLYD_ABI_VERSION 1
GLYD_API uint32_t glyd_abi_version(void) GLYD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif  // GLYD_STATUS_H
