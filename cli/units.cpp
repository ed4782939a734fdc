#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace glyd::cli {
namespace {

std::string scaled(uint64_t bytes, double step, const char* const (&units)[6]) {
  if (static_cast<double>(bytes) < step) return fmt::format("{} {}", bytes, units[0]);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= step && unit + 1 < std::size(units)) value /= step, ++unit;
  // Three digits that matter; what would round up to the next unit is written in it.
  if (value >= 999.5 && step == 1000.0 && unit + 1 < std::size(units)) value /= step, ++unit;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, units[unit]);
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[6] = {"B", "kB", "MB", "GB", "TB", "PB"};
  return scaled(bytes, 1000.0, kUnits);
}

std::string format_binary_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[6] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return scaled(bytes, 1024.0, kUnits);
}

std::string format_count(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

std::string format_clock(double seconds) {
  const auto total = static_cast<uint64_t>(std::clamp(seconds, 0.0, 359999.0));  // 99:59:59 is "long" enough
  const uint64_t hours = total / 3600, minutes = total / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60)
                   : fmt::format("{}:{:02}", minutes, total % 60);
}

std::string format_seconds(double seconds) { return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 1); }

std::string format_percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 9999.5 ? fmt::format("{:.1f}%", percent) : ">9999%";
}

bool parse_bytes(std::string_view text, uint64_t& bytes) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || value < 0) return false;
  std::string unit;
  for (const char* at = end; at != text.data() + text.size(); ++at) {
    if (*at != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  }
  static constexpr std::string_view kLetters = "kmgtp";
  double step = 1;
  if (!unit.empty() && unit != "b") {
    const size_t power = kLetters.find(unit[0]);
    const std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) return false;
    step = std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  if (step == 1) {  // whole, and taken exactly: doubles have 53 bits
    const auto whole = std::from_chars(text.data(), end, bytes);
    return whole.ec == std::errc{} && whole.ptr == end;
  }
  constexpr double kMost = 9.2e18;            // llround gives a signed 64-bit number
  if (!(value * step < kMost)) return false;  // from_chars takes "nan" too
  bytes = static_cast<uint64_t>(std::llround(value * step));
  return true;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", byte);
    }
  }
  return shown;
}

}  // namespace glyd::cli
