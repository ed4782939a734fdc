// table.hpp - aligned columns for people.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace glyd::cli {

// Columns are as wide as their widest cell and two spaces apart; numbers stand right, words left.
class Table {
 public:
  enum class Align { kLeft, kRight };

  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}

  void row(std::vector<std::string> cells);  // missing cells are empty
  void rule();                               // a line of dashes

  std::string text() const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;  // no cells: a rule
};

inline constexpr Table::Align kLeft = Table::Align::kLeft;
inline constexpr Table::Align kRight = Table::Align::kRight;

}  // namespace glyd::cli
