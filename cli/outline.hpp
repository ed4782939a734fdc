// outline.hpp - any JSON document as aligned text: the table for people of documents whose members vary.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace glyd::cli {

// Members in order: single values beside their names, lists of objects as tables, objects indented below their names.
// Members named *_bytes or "bytes" are written as sizes. What is null or empty is left out.
std::string outline(const nlohmann::ordered_json& document);

}  // namespace glyd::cli
