#include "registry.hpp"

#include <algorithm>
#include <cctype>

namespace glyd::cli {

#define GLYD_VERB(name, group) void declare_##name(Verb& verb);
#include "verbs.inc"
#undef GLYD_VERB

namespace {

struct Entry {
  const char* name;
  const char* group;
  void (*declare)(Verb&);
};

constexpr Entry kEntries[] = {
#define GLYD_VERB(name, group) {#name, group, &declare_##name},
#include "verbs.inc"
#undef GLYD_VERB
};

// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::deque<Verb>& all_verbs() {
  static std::deque<Verb> verbs = [] {
    std::deque<Verb> built;
    for (const Entry& entry : kEntries) {
      entry.declare(built.emplace_back(entry.name, entry.group));
      built.back().common_options();
    }
    return built;
  }();
  return verbs;
}

Verb* find_verb(std::string_view name) {
  for (Verb& verb : all_verbs()) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

Verb* find_opener(std::string_view option) {
  for (Verb& verb : all_verbs()) {
    if (std::find(verb.openers.begin(), verb.openers.end(), option) != verb.openers.end()) return &verb;
  }
  return nullptr;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best, lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  word = lower;
  size_t best_distance = word.size() / 3 + 2;  // one edit in three letters, and at least one, is still a slip
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const size_t distance = begins ? 1 : edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace glyd::cli
