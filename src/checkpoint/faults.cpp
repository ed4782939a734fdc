#include "checkpoint/faults.hpp"

#include <nlohmann/json.hpp>

namespace glyd {

bool is_fault(const Error& error) {
  switch (error.status) {
    case GLYD_ERROR_CORRUPT:
    case GLYD_ERROR_MISMATCH:
    case GLYD_ERROR_UNSUPPORTED:
    case GLYD_ERROR_FOREIGN_FORMAT:
    case GLYD_ERROR_NOT_FOUND:
    case GLYD_ERROR_IO:  // a sector that cannot be read, a directory where a file should be
      return true;
    default:
      return false;
  }
}

void Faults::add(Error fault) {
  ++count_;
  if (kept_.size() < kMostKept) kept_.push_back(std::move(fault));
}

std::string Faults::rest() const {
  return count_ > kept_.size() ? fmt::format("and {} more faults", count_ - kept_.size()) : "";
}

Error Faults::as_error() const {
  Error all{kept_.front().status, ""};
  for (const Error& fault : kept_) all.message += (all.message.empty() ? "" : "\n") + fault.message;
  if (!rest().empty()) all.message += "\n" + rest();
  return all;
}

OrderedJson Faults::json() const {
  OrderedJson list = OrderedJson::array();
  for (const Error& fault : kept_) list.push_back(fault.message);
  if (!rest().empty()) list.push_back(rest());
  return list;
}

}  // namespace glyd
