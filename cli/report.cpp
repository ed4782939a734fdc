#include "report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "interrupt.hpp"
#include "units.hpp"

namespace glyd::cli {

int exit_code(glyd_status status) {
  switch (status) {
    case GLYD_OK:
      return kExitDone;
    case GLYD_ERROR_CORRUPT:
    case GLYD_ERROR_MISMATCH:
      return kExitWrongData;
    case GLYD_ERROR_INVALID_ARGUMENT:
      return kExitUsage;
    case GLYD_ERROR_UNSUPPORTED:
    case GLYD_ERROR_FOREIGN_FORMAT:
      return kExitUnsupported;
    case GLYD_ERROR_CANCELLED:
      return kExitSignal + (Interrupt::raised() != 0 ? Interrupt::raised() : SIGINT);
    case GLYD_ERROR_IO:
    case GLYD_ERROR_NOT_FOUND:
    case GLYD_ERROR_EXISTS:
    case GLYD_ERROR_BUSY:
    case GLYD_ERROR_OUT_OF_MEMORY:
    case GLYD_ERROR_BUFFER_TOO_SMALL:
    case GLYD_ERROR_INTERNAL:
      return kExitIo;
  }
  return kExitIo;
}

void print_error(const std::string& message) {
  std::fputs(("glyd: error: " + printable(message) + "\n").c_str(), stderr);
}

void print_note(const std::string& message, const Common& common) {
  if (!common.quiet) std::fputs(("glyd: note: " + printable(message) + "\n").c_str(), stderr);
}

namespace {

void print_json(const Document& document) { std::fputs(document.data(), stdout); }

// What the library reports beside an error, if it does.
std::vector<std::string> faults_of(const Document& document) {
  const std::string_view text = document.data();
  if (text.empty()) return {};
  const auto parsed = nlohmann::ordered_json::parse(text);
  return parsed.contains("faults") ? parsed.at("faults").get<std::vector<std::string>>() : std::vector<std::string>();
}

}  // namespace

int fail(glyd_status status) {
  std::string message = glyd_last_error();
  if (message.empty()) message = glyd_status_text(status);
  if (status == GLYD_ERROR_CANCELLED) {
    // A stopped pack says itself what it keeps.
    const bool keeps = message.find(".glyd-staging") != std::string::npos;
    const char* left = keeps ? "\n" : "; nothing half-written is left\n";
    std::fputs(("glyd: interrupted: " + printable(message) + left).c_str(), stderr);
    return exit_code(status);
  }
  if (status == GLYD_ERROR_OUT_OF_MEMORY) message += "; raise the memory limit or run where there is more";
  if (status == GLYD_ERROR_INTERNAL) message += " (a bug in glyd: please report it with the command that shows it)";
  print_error(message);
  return exit_code(status);
}

int usage_error(const std::string& message, const std::string& see) {
  print_error(message);
  std::fputs(("See `" + see + "`.\n").c_str(), stderr);
  return kExitUsage;
}

int finish(glyd_status status, const Document& document, const Common& common,
           const std::function<std::string(const nlohmann::ordered_json&)>& text) {
  if (status != GLYD_OK) {
    const std::vector<std::string> faults = faults_of(document);
    if (faults.empty()) return fail(status);
    if (common.json) print_json(document);
    for (const std::string& fault : faults) print_error(fault);
    return exit_code(status);
  }
  if (common.json) {
    print_json(document);
    return kExitDone;
  }
  const std::string printed = text(nlohmann::ordered_json::parse(document.data()));
  std::fputs(printed.c_str(), stdout);
  if (!printed.ends_with('\n')) std::fputc('\n', stdout);
  return kExitDone;
}

int finish_summary(glyd_status status, const Document& document, const Common& common,
                   const std::function<std::string(const nlohmann::ordered_json&)>& text) {
  if (status == GLYD_OK && common.quiet && !common.json) return kExitDone;
  return finish(status, document, common, text);
}

}  // namespace glyd::cli
