#include "table.hpp"

#include <algorithm>

#include "units.hpp"

namespace glyd::cli {
namespace {

constexpr size_t kGap = 2;

// Characters, not bytes, of UTF-8: names of tensors and files may hold any.
size_t shown_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::rule() { rows_.emplace_back(); }

std::string Table::text() const {
  std::vector<size_t> widths(columns_.size());
  for (const auto& cells : rows_) {
    for (size_t column = 0; column < cells.size(); ++column)
      widths[column] = std::max(widths[column], shown_width(cells[column]));
  }
  size_t whole = kGap * (columns_.size() - 1);
  for (const size_t width : widths) whole += width;

  std::string text;
  for (const auto& cells : rows_) {
    if (cells.empty()) {
      text += std::string(whole, '-') + "\n";
      continue;
    }
    std::string line;
    for (size_t column = 0; column < cells.size(); ++column) {
      const std::string fill(widths[column] - shown_width(cells[column]), ' ');
      if (column > 0) line += std::string(kGap, ' ');
      line += columns_[column] == Align::kLeft ? cells[column] + fill : fill + cells[column];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace glyd::cli
