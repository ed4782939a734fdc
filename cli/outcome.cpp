#include "outcome.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "report.hpp"

namespace glyd::cli {

Outcome library_failure(glyd_status status, const std::string& name) {
  std::string message = glyd_last_error();
  if (message.empty()) message = glyd_status_text(status);
  if (status == GLYD_ERROR_INTERNAL) message += " (a bug in glyd: please report it with the command that shows it)";
  // Only decoding finds damage.
  if (status == GLYD_ERROR_CORRUPT && !message.starts_with("empty"))
    message += "; `glyd decompress --salvage` writes what is whole";
  return {status, fmt::format("{}: {}", name, message)};
}

Outcome system_failure(const std::string& what, const std::string& name) {
  const int code = errno;
  const glyd_status status = code == ENOENT || code == ENOTDIR ? GLYD_ERROR_NOT_FOUND : GLYD_ERROR_IO;
  return {status, fmt::format("cannot {} {}: {}", what, name, std::strerror(code))};
}

int report_failure(const Outcome& failure) {
  print_error(failure.message);
  return exit_code(failure.status);
}

}  // namespace glyd::cli
