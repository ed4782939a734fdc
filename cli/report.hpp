// report.hpp - how a verb ends: exit codes, error messages, the result as JSON or for people.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "glyd/checkpoint.h"
#include "verb.hpp"

namespace glyd::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitWrongData = 1;    // corrupt, differs
inline constexpr int kExitUsage = 2;        // an argument makes no sense
inline constexpr int kExitIo = 3;           // missing, full, forbidden, busy, taken
inline constexpr int kExitUnsupported = 4;  // not by this build, or not on this machine
inline constexpr int kExitSignal = 128;     // plus the signal's number

int exit_code(glyd_status status);

// Standard error: "glyd: error: {message}".
void print_error(const std::string& message);

// Standard error: "glyd: note: {message}", for what is no error and should be known. Not with --quiet.
void print_note(const std::string& message, const Common& common);

// Reports the last error of the library and returns its exit code.
int fail(glyd_status status);

// Reports a wrong command line and the help page that explains it; returns kExitUsage.
int usage_error(const std::string& message, const std::string& see);

// A document of the library's, freed when it goes.
class Document {
 public:
  Document() = default;
  ~Document() { glyd_text_free(text_); }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  glyd_text** out() { return &text_; }
  const char* data() const { return glyd_text_data(text_); }

 private:
  glyd_text* text_ = nullptr;
};

// Ends a call: its error (each of the faults that its document lists, if it does); or with --json its document, as it
// is; or what `text` makes of it for people.
int finish(glyd_status status, const Document& document, const Common& common,
           const std::function<std::string(const nlohmann::ordered_json&)>& text);

// The same for verbs whose table is a mere summary, which --quiet leaves out.
int finish_summary(glyd_status status, const Document& document, const Common& common,
                   const std::function<std::string(const nlohmann::ordered_json&)>& text);

}  // namespace glyd::cli
