// cmd_doctor.cpp - glyd doctor.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "outline.hpp"
#include "report.hpp"

namespace glyd::cli {
namespace {

int doctor(const Common& common) {
  Document document;
  const glyd_status status = glyd_doctor(document.out());
  return finish(status, document, common, outline);
}

}  // namespace

void declare_doctor(Verb& verb) {
  verb.summary = "what glyd finds here: CPU, libraries, GPU, driver; and what is missing";
  verb.description =
      "Prints the version, the CPU's instruction sets and which of them is used, the libraries, GPU and driver found, "
      "the verdicts of exactness checks, "
      "and for everything missing the command that brings it.";
  verb.examples = {"glyd doctor", "glyd doctor --json"};
  verb.run = doctor;
}

}  // namespace glyd::cli
