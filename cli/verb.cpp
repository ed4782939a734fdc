#include "verb.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "help.hpp"
#include "registry.hpp"
#include "report.hpp"

namespace glyd::cli {

std::vector<std::string> Argument::spellings() const {
  std::vector<std::string> result;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    result.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

namespace {

std::function<std::string(const std::string&)> whole_number(uint64_t least, uint64_t most) {
  return [least, most](const std::string& text) -> std::string {
    uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = failed == std::errc() && end == text.data() + text.size();
    if (whole && value >= least && value <= most) return "";
    return fmt::format("{} is not a whole number from {} to {}", text, least, most);
  };
}

constexpr size_t kMostOwners = 3;  // more say nothing

std::vector<std::string> verbs_with(const std::string& option) {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) {
    const bool has_it = std::any_of(verb.arguments().begin(), verb.arguments().end(), [&](const Argument& argument) {
      const auto spellings = argument.spellings();
      return !argument.positional && std::find(spellings.begin(), spellings.end(), option) != spellings.end();
    });
    if (has_it) names.push_back(verb.name);
  }
  return names;
}

bool is_negative_number(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] >= '0' && word[1] <= '9';
}

}  // namespace

Verb::Verb(std::string verb_name, std::string verb_group)
    : name(std::move(verb_name)), group(std::move(verb_group)), app_(std::make_unique<CLI::App>()) {
  app_->set_help_flag("-h,--help");
}

Verb::~Verb() = default;

void Verb::common_options() {
  flag("--json", common_.json, "print one JSON document on standard output");
  flag("-q,--quiet", common_.quiet, "no progress and no summary; errors only");
}

void Verb::positional(const std::string& word, std::string& value, const std::string& what, Offer offer,
                      std::vector<std::string> choices) {
  arguments_.push_back({word, "", what, offer, std::move(choices), true, false, true});
  last_ = app_->add_option(word, value, what)->required();
}

void Verb::positional(const std::string& word, std::vector<std::string>& values, const std::string& what, Offer offer) {
  arguments_.push_back({word, "", what, offer, {}, true, true, true});
  last_ = app_->add_option(word, values, what)->required();
}

void Verb::option(const std::string& names, std::string& value, const std::string& value_name, const std::string& what,
                  Offer offer, std::vector<std::string> choices) {
  arguments_.push_back({names, value_name, what, offer, std::move(choices), false, false, false});
  last_ = app_->add_option(names, value, what)->type_name(value_name);
}

void Verb::option(const std::string& names, int& value, int least, int most, const std::string& what) {
  arguments_.push_back({names, "N", what, Offer::kNothing, {}, false, false, false});
  last_ = app_->add_option(names, value, what)
              ->type_name("N")
              ->check(whole_number(static_cast<uint64_t>(least), static_cast<uint64_t>(most)));
}

void Verb::option(const std::string& names, uint64_t& value, uint64_t least, uint64_t most, const std::string& what) {
  arguments_.push_back({names, "N", what, Offer::kNothing, {}, false, false, false});
  last_ = app_->add_option(names, value, what)->type_name("N")->check(whole_number(least, most));
}

void Verb::require_last() {
  last_->required();
  arguments_.back().required = true;
}

void Verb::optional_last() {
  last_->required(false);
  arguments_.back().required = false;
}

void Verb::flag(const std::string& names, bool& value, const std::string& what) {
  arguments_.push_back({names, "", what, Offer::kNothing, {}, false, false, false});
  last_ = app_->add_flag(names, value, what);
}

void Verb::threads_option(int& threads) {
  option("-t,--threads", threads, 0, 4096, "threads to use; 0, the default, is one per available CPU");
}

void Verb::codec_threads_option(int& threads) {
  option("-t,-T,--threads", threads, 0, 4096, "threads to use; 0, the default, is one per available CPU");
}

void Verb::revision_option(std::string& revision) {
  option("--revision", revision, "REV", "branch, tag or commit of a repo id; main unless given");
}

int Verb::parse_and_run(std::vector<std::string> words) {
  const std::vector<std::string> given = words;
  // CLI11 takes "-9" for a number, and so for a file's name.
  if (const std::string unknown = unknown_option(given); is_negative_number(unknown.substr(0, unknown.find(';')))) {
    const bool has_levels = name == "compress";
    return cli::usage_error(fmt::format("{}: unknown option {}{}", name, unknown,
                                        has_levels ? "; the levels are --default, --max and --ultra" : ""),
                            "glyd " + name + " --help");
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app_->parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    std::fputs(page(*this).c_str(), stdout);
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    return usage_error(error, given);
  }
  // `-o "$UNSET"` is a mistake in a script, never a wish for the default.
  for (const CLI::Option* option : app_->get_options()) {
    const auto& values = option->results();
    if (option->count() == 0 || std::none_of(values.begin(), values.end(), [](const auto& v) { return v.empty(); }))
      continue;
    return cli::usage_error(fmt::format("{}: {} is an empty string", name, option->get_name()),
                            "glyd " + name + " --help");
  }
  return run(common_);
}

std::string Verb::unknown_option(const std::vector<std::string>& words) const {
  std::vector<std::string> known{"-h", "--help"}, with_value;
  for (const Argument& argument : arguments_) {
    if (argument.positional) continue;
    for (const std::string& spelling : argument.spellings()) {
      known.push_back(spelling);
      if (!argument.value_name.empty()) with_value.push_back(spelling);
    }
  }
  const auto in = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-') continue;
    const bool is_short = word[1] != '-';
    const std::string option = is_short ? word.substr(0, 2) : word.substr(0, word.find('='));
    if (!in(known, option)) {
      // What another verb has is no slip of the pen.
      const std::vector<std::string> owners = is_short ? std::vector<std::string>() : verbs_with(option);
      if (!owners.empty() && owners.size() <= kMostOwners)
        return option + fmt::format(", which belongs to `glyd {}`", fmt::join(owners, "`, `glyd "));
      const std::string meant = is_short ? "" : nearest(option, known);
      return option + (meant.empty() ? "" : "; did you mean " + meant + "?");
    }
    if (in(with_value, option) && word == option) ++i;
  }
  return "";
}

int Verb::usage_error(const CLI::ParseError& error, const std::vector<std::string>& words) const {
  const std::string see = "glyd " + name + " --help";
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (extra ||
      missing) {  // CLI11 does not name the option that it does not know, and takes it for a missing argument's value
    if (const std::string unknown = unknown_option(words); !unknown.empty()) {
      return cli::usage_error(fmt::format("{}: unknown option {}", name, unknown), see);
    }
    const std::string problem = extra ? "too many arguments" : error.what();
    return cli::usage_error(fmt::format("{}: {}; usage: {}", name, problem, usage_line(*this)), see);
  }
  return cli::usage_error(fmt::format("{}: {}", name, error.what()), see);
}

}  // namespace glyd::cli
