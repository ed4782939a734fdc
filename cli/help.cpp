#include "help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "registry.hpp"

namespace glyd::cli {
namespace {

constexpr size_t kPageWidth = 100;
constexpr size_t kTextColumn = 26;  // where descriptions begin

// `text` in lines of at most kPageWidth, each begun by `indent` spaces but the first, which `lead` begins.
std::string wrapped(const std::string& lead, const std::string& text, size_t indent) {
  std::string page = lead;
  if (lead.size() < indent) page += std::string(indent - lead.size(), ' ');
  size_t column = indent;
  bool first = true;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const size_t length = end - begin;
    if (!first && column + 1 + length > kPageWidth) {
      page += "\n" + std::string(indent, ' ');
      column = indent;
      first = true;
    }
    if (!first) page += ' ', ++column;
    page += text.substr(begin, length);
    column += length;
    first = false;
    begin = end + 1;
  }
  return page + "\n";
}

std::string argument_line(const Argument& argument) {
  std::string lead = "  ";
  if (argument.positional) {
    lead += argument.names;
  } else {
    const std::vector<std::string> spellings = argument.spellings();
    if (!spellings.front().starts_with("--")) {
      lead += fmt::format("{}", fmt::join(spellings, ", "));
    } else {
      lead += "    " + spellings.front();  // under the long names of options that have a short one
    }
    if (!argument.value_name.empty()) lead += " " + argument.value_name;
  }
  std::string text = argument.description;
  if (!argument.choices.empty()) text += fmt::format(" [{}]", fmt::join(argument.choices, ", "));
  lead += lead.size() + 2 > kTextColumn ? "\n" + std::string(kTextColumn, ' ')
                                        : std::string(kTextColumn - lead.size(), ' ');
  return wrapped(lead, text, kTextColumn);
}

}  // namespace

std::string usage_line(const Verb& verb) {
  std::string line = "glyd " + verb.name + " [OPTIONS]";
  for (const Argument& argument : verb.arguments()) {
    if (!argument.positional && argument.required)
      line += fmt::format(" {} {}", argument.spellings().back(), argument.value_name);
  }
  for (const Argument& argument : verb.arguments()) {
    if (!argument.positional) continue;
    const std::string word = argument.names + (argument.repeated ? "..." : "");
    line += argument.required ? " " + word : " [" + word + "]";
  }
  return line;
}

std::string overview() {
  std::string text =
      "glyd - lossless compression for bf16 model weights and other files\n\n"
      "Usage: glyd VERB [OPTIONS] ...\n"
      "       glyd VERB --help    arguments and examples of a verb\n"
      "       glyd --version\n";
  std::string group;
  for (const Verb& verb : all_verbs()) {
    if (verb.group != group) text += "\n" + verb.group + ":\n";
    group = verb.group;
    text += wrapped("  " + verb.name, verb.summary, 14);
  }
  text +=
      "\nStart here:\n"
      "  glyd sizes my-model                 what would packing save?\n"
      "  glyd pack my-model my-model-glyd    pack it, checking every tensor on the way\n"
      "  glyd unpack my-model-glyd back      the very same files again\n"
      "  glyd --max FILE -o OUT              compress any file; glyd -d OUT -o FILE gives it back\n\n"
      "A model is a directory with .safetensors files, one .safetensors file, or a repo id found in the\n"
      "Hugging Face cache. Every verb takes --json: one JSON document on standard output, nothing else there.\n\n"
      "Exit status: 0 done; 1 the data is wrong (corrupt, differs); 2 usage; 3 input or output failed\n"
      "(missing, full disk, permission); 4 not supported here; 130 interrupted.\n";
  return text;
}

std::string page(const Verb& verb) {
  std::string text = "Usage: " + usage_line(verb) + "\n\n" + wrapped("", verb.description, 0);
  const auto& arguments = verb.arguments();
  if (std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.positional; })) {
    text += "\nArguments:\n";
    for (const Argument& argument : arguments) {
      if (argument.positional) text += argument_line(argument);
    }
  }
  text += "\nOptions:\n";
  for (const Argument& argument : arguments) {
    if (!argument.positional) text += argument_line(argument);
  }
  text += wrapped("  -h, --help" + std::string(kTextColumn - 12, ' '), "this page", kTextColumn);
  if (!verb.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : verb.examples) text += "  " + example + "\n";
  for (const std::string& note : verb.notes) text += "\n" + wrapped("", note, 0);
  return text;
}

}  // namespace glyd::cli
