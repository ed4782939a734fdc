#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "report.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(100);
constexpr size_t kBarCells = 24;
constexpr size_t kDefaultColumns = 80;

bool wants_progress(const Common& common) {
  if (common.quiet || ::isatty(STDERR_FILENO) == 0) return false;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kDefaultColumns;
}

}  // namespace

std::string progress_line(std::string_view action, uint64_t done, uint64_t total, double seconds, std::string_view what,
                          size_t width, uint64_t before) {
  done = std::min(done, total);
  const double rate = seconds > 0 ? static_cast<double>(done - std::min(before, done)) / seconds : 0;
  if (total == kUnknownTotal) {
    std::string line =
        fmt::format("{}  {}  {}/s  {}", action, format_bytes(done), format_bytes(static_cast<uint64_t>(rate)), what);
    line.resize(std::min(line.size(), width));
    return line;
  }
  const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const size_t filled = static_cast<size_t>(part * kBarCells);
  std::string line =
      fmt::format("{}  {:3d}% [{}{}]  {} of {}", action, static_cast<int>(part * 100), std::string(filled, '#'),
                  std::string(kBarCells - filled, ' '), format_bytes(done), format_bytes(total));
  if (rate > 0) {
    line += fmt::format("  {}/s  {} left", format_bytes(static_cast<uint64_t>(rate)),
                        format_clock(static_cast<double>(total - done) / rate));
  }
  if (!what.empty()) line += fmt::format("  {}", what);
  if (line.size() > width) line.resize(width);
  return line;
}

Progress::Progress(std::string action, const Common& common, bool notes_signals)
    : action_(std::move(action)), common_(common), visible_(wants_progress(common)) {
  if (notes_signals) interrupt_.emplace();
}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

int Progress::callback(void* user, uint64_t done, uint64_t total, const char* what) {
  auto* progress = static_cast<Progress*>(user);
  if (!progress->before_) progress->before_ = progress->goes_on_ ? done : 0;
  if (progress->visible_) progress->draw(done, total, what == nullptr ? "" : printable(what));
  return Interrupt::raised();
}

void Progress::note(void* user, const char* text) {
  auto* progress = static_cast<Progress*>(user);
  if (progress->drawn_) std::fputs("\r\x1b[K", stderr);
  print_note(text, progress->common_);
}

void Progress::draw(uint64_t done, uint64_t total, std::string_view what) {
  const Clock::time_point now = Clock::now();
  if (drawn_ && now - last_drawn_ < kRedrawEvery) return;
  last_drawn_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  // One column is left free: a full line would wrap on some terminals.
  std::fputs(("\r" + progress_line(action_, done, total, seconds, what, terminal_columns() - 1, before_.value_or(0)) +
              "\x1b[K")
                 .c_str(),
             stderr);
  std::fflush(stderr);
}

}  // namespace glyd::cli
