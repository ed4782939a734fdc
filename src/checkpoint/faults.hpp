// faults.hpp - what is wrong with a packed checkpoint, found one after another instead of at the first.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "format/json_text.hpp"

namespace glyd {

// True for errors that say something of the data read. Others (no memory, a bug, a stop) end the work.
bool is_fault(const Error& error);

class Faults {
 public:
  static constexpr size_t kMostKept = 20;  // messages; the others are counted

  void add(Error fault);
  bool empty() const { return count_ == 0; }
  uint64_t count() const { return count_; }

  // The status of the first, and all that were kept, a line each.
  Error as_error() const;
  OrderedJson json() const;  // the same, as a list of strings

 private:
  std::string rest() const;  // "and 3 more"; empty if none were left out

  std::vector<Error> kept_;
  uint64_t count_ = 0;
};

}  // namespace glyd
