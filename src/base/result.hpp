// result.hpp - Result<T>: a value or an Error with the place and the remedy. Thrown exceptions are bugs or bad_alloc;
// capi/ catches them.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "glyd/status.h"

namespace glyd {

using Status = glyd_status;

struct Error {
  Status status = GLYD_ERROR_INTERNAL;
  std::string message;
};

// Error constructors, one a kind of failure: `return corrupt("{}: header is {} bytes", path, n);`
template <typename... Args>
Error make_error(Status status, fmt::format_string<Args...> format, Args&&... args) {
  return Error{status, fmt::format(format, std::forward<Args>(args)...)};
}
#define GLYD_ERROR_KIND(name, code)                                       \
  template <typename... Args>                                             \
  Error name(fmt::format_string<Args...> format, Args&&... args) {        \
    return Error{code, fmt::format(format, std::forward<Args>(args)...)}; \
  }
GLYD_ERROR_KIND(invalid_argument, GLYD_ERROR_INVALID_ARGUMENT)
GLYD_ERROR_KIND(corrupt, GLYD_ERROR_CORRUPT)
GLYD_ERROR_KIND(mismatch, GLYD_ERROR_MISMATCH)
GLYD_ERROR_KIND(unsupported, GLYD_ERROR_UNSUPPORTED)
GLYD_ERROR_KIND(foreign_format, GLYD_ERROR_FOREIGN_FORMAT)
GLYD_ERROR_KIND(io_error, GLYD_ERROR_IO)
GLYD_ERROR_KIND(not_found, GLYD_ERROR_NOT_FOUND)
GLYD_ERROR_KIND(exists, GLYD_ERROR_EXISTS)
GLYD_ERROR_KIND(busy, GLYD_ERROR_BUSY)
GLYD_ERROR_KIND(cancelled, GLYD_ERROR_CANCELLED)
GLYD_ERROR_KIND(internal, GLYD_ERROR_INTERNAL)
#undef GLYD_ERROR_KIND

struct Ok {};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

  // Puts "where: " before an error's message.
  Result&& at(std::string_view where) && {
    if (state_.index() == 1) error().message = fmt::format("{}: {}", where, error().message);
    return std::move(*this);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Ok) {}                                      // NOLINT
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  explicit operator bool() const { return !error_.has_value(); }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }
  Result&& at(std::string_view where) && {
    if (error_) error_->message = fmt::format("{}: {}", where, error_->message);
    return std::move(*this);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace glyd

#define GLYD_CONCAT_INNER(a, b) a##b
#define GLYD_CONCAT(a, b) GLYD_CONCAT_INNER(a, b)
// GLYD_TRY(auto x, f()): x is f()'s value, or the function returns f()'s error.
#define GLYD_TRY(declaration, expression)                                                            \
  auto GLYD_CONCAT(glyd_try_, __LINE__) = (expression);                                              \
  if (!GLYD_CONCAT(glyd_try_, __LINE__)) return std::move(GLYD_CONCAT(glyd_try_, __LINE__)).error(); \
  declaration = std::move(GLYD_CONCAT(glyd_try_, __LINE__)).value()
// GLYD_CHECK(f()): for Result<void>.
#define GLYD_CHECK(expression)                                                                \
  do {                                                                                        \
    if (auto glyd_check_ = (expression); !glyd_check_) return std::move(glyd_check_).error(); \
  } while (false)
