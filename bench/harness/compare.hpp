// compare.hpp - times a subject against a baseline in the same run, by turns, so that a machine's mood strikes both.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace glyd::bench {

struct Spread {
  double min = 0, median = 0, max = 0;
};
Spread spread_of(std::vector<double> values);

enum class RatioOf { kTime, kRate };  // subject's over baseline's

struct Comparison {
  std::vector<double> subject_s, baseline_s;  // a pair each round
  Spread ratio(RatioOf of) const;
};

// `rounds` rounds after one that is not counted; each runs the baseline and the subject once, in alternating order.
// Both get the round's number, so that they can rotate through their data.
Comparison compare(int rounds, const std::function<void(int)>& baseline, const std::function<void(int)>& subject);

// What a result is held to.
struct Limit {
  RatioOf of;
  double value = 0;  // times: at most, rates: at least; 0: none
};

// The JSON line of a result: `labels` (name, layout, matrix ...) and what was measured. `bytes` is what a rate counts.
nlohmann::ordered_json result_line(nlohmann::ordered_json labels, const std::string& baseline,
                                   const Comparison& measured, double bytes, const Limit& limit);

}  // namespace glyd::bench
