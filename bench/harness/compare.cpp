#include "harness/compare.hpp"

#include <algorithm>
#include <chrono>

namespace glyd::bench {
namespace {

double seconds(const std::function<void(int)>& body, int round) {
  const auto start = std::chrono::steady_clock::now();
  body(round);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

nlohmann::ordered_json as_json(const Spread& spread, double unit) {
  const auto rounded = [&](double value) {
    return static_cast<double>(static_cast<int64_t>(value * unit * 1e4 + 0.5)) / 1e4;
  };
  return {{"min", rounded(spread.min)}, {"median", rounded(spread.median)}, {"max", rounded(spread.max)}};
}

Spread rates(const Spread& times, double bytes) { return {bytes / times.max, bytes / times.median, bytes / times.min}; }

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {values.front(), median, values.back()};
}

Spread Comparison::ratio(RatioOf of) const {
  std::vector<double> ratios;
  for (size_t i = 0; i < subject_s.size(); ++i) {
    ratios.push_back(of == RatioOf::kTime ? subject_s[i] / baseline_s[i] : baseline_s[i] / subject_s[i]);
  }
  return spread_of(std::move(ratios));
}

Comparison compare(int rounds, const std::function<void(int)>& baseline, const std::function<void(int)>& subject) {
  Comparison measured;
  for (int round = -1; round < rounds; ++round) {
    const bool subject_first = round % 2 != 0;
    double subject_time = subject_first ? seconds(subject, round + 1) : 0;
    const double baseline_time = seconds(baseline, round + 1);
    if (!subject_first) subject_time = seconds(subject, round + 1);
    if (round < 0) continue;
    measured.subject_s.push_back(subject_time);
    measured.baseline_s.push_back(baseline_time);
  }
  return measured;
}

nlohmann::ordered_json result_line(nlohmann::ordered_json labels, const std::string& baseline,
                                   const Comparison& measured, double bytes, const Limit& limit) {
  const Spread ratio = measured.ratio(limit.of), subject = spread_of(measured.subject_s),
               base = spread_of(measured.baseline_s);
  const bool is_time = limit.of == RatioOf::kTime;
  labels["baseline"] = baseline;
  labels["ratio_of"] = is_time ? "time" : "rate";
  labels["ratio"] = as_json(ratio, 1);
  if (limit.value > 0) {
    labels[is_time ? "at_most" : "at_least"] = limit.value;
    labels["met"] = is_time ? ratio.median <= limit.value : ratio.median >= limit.value;
  }
  labels["rounds"] = measured.subject_s.size();
  labels["ms"] = as_json(subject, 1e3);
  labels["baseline_ms"] = as_json(base, 1e3);
  labels["gb_s"] = as_json(rates(subject, bytes), 1e-9);
  labels["baseline_gb_s"] = as_json(rates(base, bytes), 1e-9);
  return labels;
}

}  // namespace glyd::bench
