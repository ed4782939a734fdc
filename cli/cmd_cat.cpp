// cmd_cat.cpp - glyd cat FILE... [--range BEGIN:END].
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "codec_verb.hpp"
#include "report.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct CatArguments {
  std::vector<std::string> sources;
  std::string range, memory;
  int threads = 0;
};

struct ByteRange {
  uint64_t begin = 0, end = UINT64_MAX;
};

// "BEGIN:END", "BEGIN:+BYTES", either part may be missing.
bool parse_range(const std::string& text, ByteRange& range) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  const std::string begin = text.substr(0, colon);
  std::string end = text.substr(colon + 1);
  if (!begin.empty() && !parse_bytes(begin, range.begin)) return false;
  if (end.empty()) return true;
  const bool length = end[0] == '+';
  if (length) end.erase(0, 1);
  if (!parse_bytes(end, range.end)) return false;
  if (length) range.end = range.end > UINT64_MAX - range.begin ? UINT64_MAX : range.begin + range.end;
  return true;
}

// The first unit that ends behind `at`; they are in order.
Outcome unit_at(const FrameFile& frame, uint64_t units, uint64_t at, uint64_t& index) {
  uint64_t low = 0, high = units;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    glyd_unit_info unit{};
    if (Outcome known = frame.unit(middle, unit); !known.ok()) return known;
    if (unit.content_begin + unit.content_bytes <= at)
      low = middle + 1;
    else
      high = middle;
  }
  index = low;
  return {};
}

// A few whole units at a time, so that none is decoded twice and any range takes bounded memory.
Outcome cat_range(const InputFile& source, ByteRange range, const glyd_decompress_options& options, OutputFile& out) {
  constexpr uint64_t kMostPiece = 64 << 20;
  FrameFile frame;
  if (Outcome opened = frame.open(source); !opened.ok()) return opened;
  glyd_frame_info info{};
  if (Outcome known = frame.info(info); !known.ok()) return known;
  if (range.begin > info.content_bytes) {
    return {GLYD_ERROR_INVALID_ARGUMENT, fmt::format("{}: the range begins at {}, the content has {} bytes",
                                                     source.name(), range.begin, info.content_bytes)};
  }
  range.end = std::min(range.end, info.content_bytes);
  uint64_t index = 0;
  if (Outcome found = unit_at(frame, info.units, range.begin, index); !found.ok()) return found;
  std::vector<char> piece;
  for (uint64_t at = range.begin; at < range.end;) {
    uint64_t end = at;
    while (end < range.end) {
      glyd_unit_info unit{};
      if (Outcome known = frame.unit(index, unit); !known.ok()) return known;
      const uint64_t unit_end = std::min(unit.content_begin + unit.content_bytes, range.end);
      if (end != at && unit_end - at > kMostPiece) break;
      end = unit_end;
      ++index;
    }
    if (piece.size() < end - at) piece.resize(end - at);
    if (Outcome read = frame.read(at, piece.data(), end - at, options); !read.ok()) return read;
    if (Outcome written = out.write(piece.data(), end - at); !written.ok()) return written;
    at = end;
  }
  return {};
}

int cat(const CatArguments& arguments, const Common& common) {
  glyd_decompress_options options{};
  options.struct_size = sizeof options;
  options.threads = arguments.threads;
  if (!read_memory(arguments.memory, "cat", options)) return kExitUsage;
  ByteRange range;
  const bool parsed = arguments.range.empty() || parse_range(arguments.range, range);
  if (parsed && range.begin > range.end)
    return usage_error(
        fmt::format("cat: --range {}: the end lies before the beginning; BEGIN:+BYTES gives a length", arguments.range),
        "glyd cat --help");
  if (!parsed)
    return usage_error(fmt::format("cat: --range {}: BEGIN:END or BEGIN:+BYTES, such as 1MiB:+4096", arguments.range),
                       "glyd cat --help");
  if (common.json) return usage_error("cat: --json is for standard output, which has the content", "glyd cat --help");
  return for_each_source(arguments.sources, [&](const std::string& path) {
    InputFile source;
    const auto reads = arguments.range.empty() ? InputFile::Reads::kForward : InputFile::Reads::kAnywhere;
    if (Outcome opened = source.open(path, reads); !opened.ok()) return opened;
    OutputFile out;
    if (Outcome opened = out.open("-", source, {}); !opened.ok()) return opened;
    if (!arguments.range.empty()) return cat_range(source, range, options, out);
    CopyResult result;
    return decompress_file(source, &out, options, common, result);
  });
}

}  // namespace

void declare_cat(Verb& verb) {
  auto arguments = std::make_shared<CatArguments>();
  verb.summary = "print the content of compressed files, or a range of it";
  verb.description =
      "Writes the content of each FILE to standard output. With --range only the units that the range touches are read "
      "and decoded, and only their checks are compared.";
  verb.positional("FILE", arguments->sources, "files made by `glyd compress`; - is standard input", Offer::kPaths);
  verb.option(
      "-R,--range", arguments->range, "RANGE",
      "BEGIN:END or BEGIN:+BYTES of the content of each FILE; either may be left out, sizes may have units; what "
      "lies behind the end is left out");
  declare_decoding(verb, arguments->memory, arguments->threads);
  verb.examples = {"glyd cat log.glyd | grep error", "glyd cat data.glyd --range 512MiB:+1MiB > part"};
  verb.run = [arguments](const Common& common) { return cat(*arguments, common); };
}

}  // namespace glyd::cli
