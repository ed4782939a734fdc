// text.hpp - documents handed to the caller.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/guard.hpp"
#include "glyd/checkpoint.h"

struct glyd_text {
  std::string text;
};

namespace glyd::capi {

// The frame of every function that gives a document: the out-parameter is checked and nulled, the document built by
// `body`, which returns Result<ordered_json>. Bytes that are not UTF-8 (in paths) become the replacement character
// rather than an error.
template <typename Body>
glyd_status give_document(glyd_text** document, Body&& body) noexcept {
  return guarded([&]() -> Result<void> {
    if (document == nullptr) return invalid_argument("document: null pointer");
    *document = nullptr;
    GLYD_TRY(const nlohmann::ordered_json result, body());
    *document = new glyd_text{result.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
    return Ok{};
  });
}

// The same for functions that report what they found though it is an error: `body` fills the report it is given.
template <typename Body>
glyd_status give_report(glyd_text** document, Body&& body) noexcept {
  return guarded([&]() -> Result<void> {
    if (document == nullptr) return invalid_argument("document: null pointer");
    *document = nullptr;
    nlohmann::ordered_json report;
    Result<void> done = body(report);
    if (!report.is_null())
      *document = new glyd_text{report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
    return done;
  });
}

}  // namespace glyd::capi
