// outcome.hpp - what work on one file came to, so that a verb over many files can name each failure and go on.
#pragma once

#include <string>

#include "glyd/status.h"

namespace glyd::cli {

struct [[nodiscard]] Outcome {
  glyd_status status = GLYD_OK;
  std::string message;  // of a failure: names the file, the cause and the remedy

  bool ok() const { return status == GLYD_OK; }
};

// A call of the library that failed: its last error, after `name`.
Outcome library_failure(glyd_status status, const std::string& name);

// A system call that failed: "cannot {what} {name}: {strerror(errno)}".
Outcome system_failure(const std::string& what, const std::string& name);

// Prints it and gives its exit status.
int report_failure(const Outcome& failure);

}  // namespace glyd::cli
