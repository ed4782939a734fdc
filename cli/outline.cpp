#include "outline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "table.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string title(std::string name) {
  for (char& c : name) {
    if (c == '_') c = ' ';
  }
  if (name.ends_with(" bytes") && name != "source bytes") name.resize(name.size() - 6);
  return name;
}

bool is_size(std::string_view name) { return name == "bytes" || name.ends_with("_bytes"); }

bool is_list_of_objects(const Json& value) { return value.is_array() && !value.empty() && value.front().is_object(); }

// One value on one line.
std::string cell(const std::string& name, const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer() && is_size(name)) return format_bytes(value.get<uint64_t>());
  if (value.is_number_float()) return fmt::format("{:.2f}", value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string text;
    for (const Json& item : value) text += (text.empty() ? "" : name == "shape" ? " x " : ", ") + cell("", item);
    return text.empty() ? "-" : text;
  }
  if (value.is_object()) {
    std::string text;
    for (const auto& [key, item] : value.items())
      text += (text.empty() ? "" : ", ") + title(key) + " " + cell(key, item);
    return text.empty() ? "-" : text;
  }
  return value.dump();
}

std::string table_of(const Json& rows) {
  std::vector<std::string> keys;
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  std::vector<Table::Align> columns;
  std::vector<std::string> heads;
  for (const std::string& key : keys) {
    const bool numbers = rows.front().contains(key) && rows.front().at(key).is_number();
    columns.push_back(numbers ? kRight : kLeft);
    const bool taken = std::find(heads.begin(), heads.end(), title(key)) != heads.end();
    heads.push_back(taken ? title(key) + " bytes" : title(key));
  }
  Table table(columns);
  table.row(heads);
  table.rule();
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& key : keys) cells.push_back(row.contains(key) ? cell(key, row.at(key)) : "");
    table.row(cells);
  }
  return table.text();
}

// {"BF16": n} as {"BF16_bytes": n}.
Json named_bytes(const Json& counts) {
  Json named = Json::object();
  for (const auto& [key, value] : counts.items()) named[key + "_bytes"] = value;
  return named;
}

std::string indented(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1);
    if (end > begin) result += "  ";
    result += text.substr(begin, end - begin + 1);
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string outline(const Json& document) {
  Table values({kLeft, kLeft});
  std::string sections;
  bool any = false;
  for (const auto& [key, value] : document.items()) {
    if (value.is_null() || ((value.is_array() || value.is_object()) && value.empty())) continue;
    if (is_list_of_objects(value)) {
      sections += "\n" + title(key) + ":\n" + indented(table_of(value));
    } else if (value.is_object()) {
      const std::string inner = key == "dtypes" ? outline(named_bytes(value)) : outline(value);
      sections += "\n" + title(key) + ":\n" + indented(inner.empty() ? "none\n" : inner);
    } else if (value.is_array() && value.front().is_string() && key != "shape") {
      sections += "\n" + title(key) + ":\n";
      for (const Json& item : value) sections += "  " + item.get<std::string>() + "\n";
    } else {
      values.row({title(key), cell(key, value)});
      any = true;
    }
  }
  std::string text = (any ? values.text() : "") + sections;
  if (!any && text.starts_with('\n')) text.erase(0, 1);
  return text;
}

}  // namespace glyd::cli
