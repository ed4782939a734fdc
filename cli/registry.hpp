// registry.hpp - all verbs, by name.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "verb.hpp"

namespace glyd::cli {

// Every verb, declared, in the order of verbs.inc.
std::deque<Verb>& all_verbs();

Verb* find_verb(std::string_view name);

// The verb that `option` stands for as a first argument (Verb::openers); null if none.
Verb* find_opener(std::string_view option);

// The candidate that `word` most likely meant; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace glyd::cli
