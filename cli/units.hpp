// units.hpp - numbers and names for people. Bytes in powers of ten (kB, MB, GB) for files, of two (GiB) for memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace glyd::cli {

// A name or message for a terminal: control characters, which could move its cursor or colour it, as \xNN.
std::string printable(std::string_view text);

std::string format_bytes(uint64_t bytes);                   // "9.41 MB"
std::string format_binary_bytes(uint64_t bytes);            // "8.97 MiB"
std::string format_count(uint64_t count);                   // "8,192"
std::string format_clock(double seconds);                   // "1:02", "2:03:04"
std::string format_seconds(double seconds);                 // "0.42 s"
std::string format_percent(uint64_t part, uint64_t whole);  // "70.7%"; "-" of nothing

// "4096", "64KiB", "1.5 MB", "2G" (powers of two, as KiB). False if it is none or too large.
bool parse_bytes(std::string_view text, uint64_t& bytes);

}  // namespace glyd::cli
