#include "completion_scripts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "registry.hpp"

namespace glyd::cli {
namespace {

const char* const kBanner = "# Written by `glyd completion {}`; do not edit.\n";

// The verb's options and --help, which no declaration names.
std::vector<Argument> options_of(const Verb& verb) {
  std::vector<Argument> options;
  for (const Argument& argument : verb.arguments()) {
    if (!argument.positional) options.push_back(argument);
  }
  options.push_back({"-h,--help", "", "help for this verb"});
  return options;
}

std::string quoted(std::string text) {  // for single quotes of a shell
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

// Up to the first clause, for lists.
std::string brief(const std::string& text) {
  return text.substr(0, std::min({text.find(';'), text.find(" ("), text.find(": ")}));
}

std::string verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) names.push_back(verb.name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string bash_offer(const Argument& argument) {
  switch (argument.offer) {
    case Offer::kChoices:
      return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", fmt::join(argument.choices, " "));
    case Offer::kPaths:
      return "COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames 2>/dev/null";
    case Offer::kDirectories:
      return "COMPREPLY=($(compgen -d -- \"$current\")); compopt -o filenames 2>/dev/null";
    case Offer::kNothing:
      break;
  }
  return "COMPREPLY=()";
}

// What the verb's words that are no options complete to: the first positional's offer serves them all.
const Argument* first_positional(const Verb& verb) {
  const auto found =
      std::find_if(verb.arguments().begin(), verb.arguments().end(), [](const Argument& a) { return a.positional; });
  return found == verb.arguments().end() ? nullptr : &*found;
}

std::string zsh_escaped(std::string text) {
  for (const char c : {'\\', '[', ']', ':'}) {
    for (size_t at = 0; (at = text.find(c, at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  }
  return text;
}

std::string zsh_offer(const Argument& argument) {
  switch (argument.offer) {
    case Offer::kChoices:
      return fmt::format("({})", fmt::join(argument.choices, " "));
    case Offer::kPaths:
      return "_files";
    case Offer::kDirectories:
      return "_files -/";
    case Offer::kNothing:
      break;
  }
  return "";
}

std::string zsh_option(const Argument& option) {
  const std::vector<std::string> spellings = option.spellings();
  const std::string names = spellings.size() == 1
                                ? quoted(spellings[0]).substr(1, spellings[0].size())
                                : fmt::format("'({})'{{{}}}", fmt::join(spellings, " "), fmt::join(spellings, ","));
  std::string spec = fmt::format("[{}]", zsh_escaped(brief(option.description)));
  if (!option.value_name.empty()) spec += fmt::format(":{}:{}", option.value_name, zsh_offer(option));
  return names + quoted(spec);
}

}  // namespace

std::string bash_completion() {
  std::string cases;
  for (const Verb& verb : all_verbs()) {
    std::vector<std::string> spellings;
    std::string values;
    for (const Argument& option : options_of(verb)) {
      for (const std::string& spelling : option.spellings()) spellings.push_back(spelling);
      if (!option.value_name.empty())
        values += fmt::format("        {}) {}; return ;;\n", fmt::join(option.spellings(), "|"), bash_offer(option));
    }
    cases += fmt::format("    {})\n", verb.name);
    if (!values.empty()) cases += "      case \"$previous\" in\n" + values + "      esac\n";
    cases +=
        fmt::format("      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '{}' -- \"$current\")); return; fi\n",
                    fmt::join(spellings, " "));
    if (const Argument* positional = first_positional(verb)) cases += "      " + bash_offer(*positional) + "\n";
    cases += "      ;;\n";
  }
  return fmt::format(fmt::runtime(kBanner), "bash") +
         "_glyd() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}\n"
         "  COMPREPLY=()\n"
         "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         verb_names() +
         " help --help --version' -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case \"$verb\" in\n" +
         "    help) COMPREPLY=($(compgen -W '" + verb_names() + "' -- \"$current\")) ;;\n" + cases +
         "  esac\n"
         "}\n"
         "complete -F _glyd glyd\n";
}

std::string zsh_completion() {
  std::string verbs, cases;
  for (const Verb& verb : all_verbs()) {
    verbs += "    " + quoted(verb.name + ":" + zsh_escaped(verb.summary)) + "\n";
    cases += fmt::format("    {})\n      _arguments -s", verb.name);
    for (const Argument& option : options_of(verb)) cases += " \\\n        " + zsh_option(option);
    for (const Argument& argument : verb.arguments()) {
      if (!argument.positional) continue;
      cases += " \\\n        " +
               quoted(fmt::format("{}:{}:{}", argument.repeated ? "*" : "", argument.names, zsh_offer(argument)));
    }
    cases += "\n      ;;\n";
  }
  return "#compdef glyd\n" + fmt::format(fmt::runtime(kBanner), "zsh") + "_glyd() {\n  local -a verbs\n  verbs=(\n" +
         verbs +
         "    'help:help for a verb'\n"
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe 'verb' verbs\n"
         "    _arguments '(- *)--help[all verbs]' '(- *)--version[the version]'\n"
         "    return\n"
         "  fi\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $words[1] in\n"
         "    help) _describe 'verb' verbs ;;\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
         "  _glyd \"$@\"\n"
         "else\n"
         "  compdef _glyd glyd\n"
         "fi\n";
}

std::string fish_completion() {
  std::string text = fmt::format(fmt::runtime(kBanner), "fish") +
                     "complete -c glyd -f\n"
                     "complete -c glyd -n __fish_use_subcommand -l help -s h -d 'all verbs'\n"
                     "complete -c glyd -n __fish_use_subcommand -l version -s V -d 'the version'\n"
                     "complete -c glyd -n __fish_use_subcommand -a help -d 'help for a verb'\n"
                     "complete -c glyd -n '__fish_seen_subcommand_from help' -a '" +
                     verb_names() + "'\n";
  for (const Verb& verb : all_verbs()) {
    text += fmt::format("complete -c glyd -n __fish_use_subcommand -a {} -d {}\n", verb.name, quoted(verb.summary));
    const std::string seen = fmt::format("complete -c glyd -n '__fish_seen_subcommand_from {}'", verb.name);
    for (const Argument& option : options_of(verb)) {
      text += seen;
      for (const std::string& spelling : option.spellings()) {
        text += spelling.starts_with("--") ? " -l " + spelling.substr(2) : " -s " + spelling.substr(1);
      }
      if (option.offer == Offer::kChoices)
        text += fmt::format(" -xa '{}'", fmt::join(option.choices, " "));
      else if (option.offer == Offer::kPaths)
        text += " -rF";
      else if (option.offer == Offer::kDirectories)
        text += " -xa '(__fish_complete_directories)'";
      else if (!option.value_name.empty())
        text += " -x";
      text += " -d " + quoted(brief(option.description)) + "\n";
    }
    if (const Argument* positional = first_positional(verb)) {
      text += seen +
              (positional->offer == Offer::kChoices       ? fmt::format(" -a '{}'", fmt::join(positional->choices, " "))
               : positional->offer == Offer::kDirectories ? " -a '(__fish_complete_directories)'"
                                                          : " -F") +
              "\n";
    }
  }
  return text;
}

}  // namespace glyd::cli
