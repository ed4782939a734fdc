#include "base/guard.hpp"

#include <string>

namespace glyd::capi {
namespace {

thread_local std::string last_message;

}  // namespace

Status fail(const Error& error) noexcept {
  try {
    last_message = error.message;
  } catch (...) {
    last_message.clear();
  }
  return error.status;
}

const char* last_error() noexcept { return last_message.c_str(); }

}  // namespace glyd::capi
