// journal.hpp - which shards of an interrupted pack are whole, so that the next pack need not make them again. Spec:
// docs/spec/checkpoint.md 6.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/shard_writer.hpp"
#include "checkpoint/staging.hpp"

namespace glyd {

class Journal {
 public:
  // `settings` is everything besides the source files that decides a shard's bytes. Reads what an earlier pack left; a
  // journal that cannot be read, or of other settings, counts as none.
  static Journal open(const Staging& staging, const Source& source, OrderedJson settings);

  // The shard of source.tensor_files[index], if it is whole and its source is what it was.
  std::optional<FinishedShard> finished(size_t index) const;

  // Remembers a shard that has been synced.
  Result<void> add(size_t index, const FinishedShard& shard);

  // Which shards of an earlier pack are not used, and why; "" if there are none.
  std::string left_out() const;

 private:
  struct Entry {
    size_t index;
    OrderedJson source;
    FinishedShard shard;
  };
  OrderedJson describe(size_t index) const;
  static Result<Entry> entry_from_json(const Json& value);
  void read(const std::string& text);
  std::string other_settings(const Json& found, size_t shards) const;
  bool has_same_source(const Entry& entry) const;
  bool is_whole(const FinishedShard& shard) const;

  const Staging* staging_ = nullptr;
  const Source* source_ = nullptr;
  OrderedJson settings_;
  std::string unusable_;  // why nothing of an earlier pack is used
  std::vector<Entry> entries_;
};

}  // namespace glyd
