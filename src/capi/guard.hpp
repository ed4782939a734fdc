// guard.hpp - the boundary: errors become a status and a text on the thread, exceptions stop here.
#pragma once

#include <new>
#include <string>

#include "base/result.hpp"

namespace glyd::capi {

// Keeps the message for glyd_last_error() and returns the status.
Status fail(const Error& error) noexcept;

// Runs `body`, which returns Result<void>; the only place in the library that catches.
template <typename Body>
Status guarded(Body&& body) noexcept {
  try {
    const Result<void> result = body();
    return result ? GLYD_OK : fail(result.error());
  } catch (const std::bad_alloc&) {
    return fail({GLYD_ERROR_OUT_OF_MEMORY, "out of memory"});
  } catch (const std::exception& exception) {
    return fail({GLYD_ERROR_INTERNAL, exception.what()});
  } catch (...) {
    return fail({GLYD_ERROR_INTERNAL, "unknown exception"});
  }
}

// A caller's options struct of any age as today's: members that the caller's does not have are zero. Null gives all
// defaults.
template <typename Options>
Result<Options> read_options(const Options* given) {
  Options options{};
  if (given != nullptr) {
    if (given->struct_size == 0) return invalid_argument("options: struct_size is 0; set it to sizeof the struct");
    __builtin_memcpy(static_cast<void*>(&options), given,
                     given->struct_size < sizeof(Options) ? given->struct_size : sizeof(Options));
  }
  options.struct_size = sizeof(Options);
  return options;
}

}  // namespace glyd::capi
