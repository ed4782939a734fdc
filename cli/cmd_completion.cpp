// cmd_completion.cpp - glyd completion bash|zsh|fish. share/completions/ holds these scripts, written by this verb.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "completion_scripts.hpp"
#include "report.hpp"

namespace glyd::cli {
namespace {

int completion(const std::string& shell, const Common& common) {
  std::string script;
  if (shell == "bash") script = bash_completion();
  if (shell == "zsh") script = zsh_completion();
  if (shell == "fish") script = fish_completion();
  if (script.empty())
    return usage_error(fmt::format("completion: unknown shell '{}'; there are bash, zsh and fish", shell),
                       "glyd completion --help");
  if (common.json) script = nlohmann::json{{"shell", shell}, {"script", script}}.dump() + "\n";
  std::fputs(script.c_str(), stdout);
  return kExitDone;
}

}  // namespace

void declare_completion(Verb& verb) {
  auto shell = std::make_shared<std::string>();
  verb.summary = "print a shell's completion script: bash, zsh or fish";
  verb.description = "Prints a script that makes the shell complete glyd's verbs, options and values.";
  verb.positional("SHELL", *shell, "the shell", Offer::kChoices, {"bash", "zsh", "fish"});
  verb.examples = {"source <(glyd completion bash)",
                   "glyd completion zsh > ~/.zfunc/_glyd      # with ~/.zfunc in fpath before compinit",
                   "glyd completion fish > ~/.config/fish/completions/glyd.fish"};
  verb.run = [shell](const Common& common) { return completion(*shell, common); };
}

}  // namespace glyd::cli
