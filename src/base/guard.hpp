// guard.hpp - the boundary of every library's C ABI: errors become a status and a text on the thread, exceptions stop
// here.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>

#include "base/result.hpp"

namespace glyd::capi {

// Keeps the message for last_error() and returns the status.
Status fail(const Error& error) noexcept;

// What the last failed call on this thread said; "" if none did. Valid until the next one.
const char* last_error() noexcept;

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

// A caller's struct of any age as today's: members that the caller's does not have are zero.
template <typename Struct>
Result<Struct> read_struct(const Struct* given, const char* name) {
  if (given == nullptr) return invalid_argument("{}: null", name);
  if (given->struct_size == 0) return invalid_argument("{}: struct_size is 0; set it to sizeof the struct", name);
  Struct value{};
  std::memcpy(static_cast<void*>(&value), given, std::min(given->struct_size, sizeof(Struct)));
  value.struct_size = sizeof(Struct);
  return value;
}

// The same for options: null gives all defaults.
template <typename Options>
Result<Options> read_options(const Options* given) {
  if (given != nullptr) return read_struct(given, "options");
  Options defaults{};
  defaults.struct_size = sizeof(Options);
  return defaults;
}

// `value` into a caller's struct of any age: as much as that has room for.
template <typename Struct>
Result<void> write_struct(Struct value, Struct* out, const char* name) {
  if (out == nullptr) return invalid_argument("{} is null", name);
  if (out->struct_size < sizeof out->struct_size) return invalid_argument("{}: struct_size is not set", name);
  value.struct_size = out->struct_size;
  std::memcpy(static_cast<void*>(out), &value, std::min(out->struct_size, sizeof value));
  return Ok{};
}

// For pointers to objects and to functions.
template <typename Pointer>
Result<void> not_null(Pointer pointer, const char* name) {
  if (pointer == nullptr) return invalid_argument("{} is null", name);
  return Ok{};
}

}  // namespace glyd::capi
