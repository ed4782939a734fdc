// child.hpp - work done in a forked process, which may be killed or limited without harm to the test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace glyd::test {

// Runs `body` in a child, which exits with what it returns.
inline pid_t start_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

// The status that wait() gives.
inline int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

inline int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

}  // namespace glyd::test
