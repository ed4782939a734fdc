#include "checkpoint/journal.hpp"

#include "base/sha256.hpp"
#include "checkpoint/safetensors_file.hpp"
#include "checkpoint/streams.hpp"

namespace glyd {
namespace {

constexpr uint64_t kMostJournalBytes = kMostManifestBytes;
constexpr const char* kUnreadable = "what a stopped pack left there, whose journal.json cannot be read";

OrderedJson shard_json(const FinishedShard& shard) {
  OrderedJson tensors = OrderedJson::object();
  auto& pairs = tensors.get_ref<OrderedJson::object_t&>();  // names are unique: no need to look each up
  for (const auto& [name, tensor] : shard.tensors) pairs.emplace_back(name, tensor_to_json(tensor));
  return {{"shard", shard.shard},
          {"shard_bytes", shard.shard_bytes},
          {"shard_header_sha256", shard.shard_header_sha256},
          {"source_sha256", shard.source_sha256 ? OrderedJson(*shard.source_sha256) : OrderedJson(nullptr)},
          {"tensors", std::move(tensors)}};
}

Result<FinishedShard> shard_from_json(const Json& value) {
  GLYD_TRY(JsonFields fields, JsonFields::of(value, "journal"));
  FinishedShard shard;
  GLYD_TRY(shard.shard, fields.string("shard"));
  GLYD_TRY(shard.shard_bytes, fields.number("shard_bytes"));
  GLYD_TRY(shard.shard_header_sha256, fields.sha256("shard_header_sha256"));
  GLYD_TRY(shard.source_sha256, fields.string_or_null("source_sha256"));
  GLYD_TRY(const Json* tensors, fields.object("tensors"));
  for (const auto& [name, tensor_value] : tensors->items()) {
    GLYD_TRY(ManifestTensor tensor, tensor_from_json(tensor_value, "journal"));
    shard.tensors.emplace_back(name, std::move(tensor));
  }
  return shard;
}

}  // namespace

OrderedJson Journal::describe(size_t index) const {
  const SourceFile& file = source_->tensor_files[index];
  return {{"path", file.path},
          {"bytes", file.bytes},
          {"modified_ns", file.modified_ns},
          {"changed_ns", file.changed_ns},
          {"inode", file.inode},
          {"header_sha256", sha256_hex(as_bytes(source_->headers[index].text))}};
}

Journal Journal::open(const Staging& staging, const Source& source, OrderedJson settings) {
  Journal journal;
  journal.staging_ = &staging;
  journal.source_ = &source;
  journal.settings_ = std::move(settings);
  const auto text = read_text_file(staging.journal_path(), kMostJournalBytes);
  if (text) journal.read(text.value());
  if (!text && text.error().status != GLYD_ERROR_NOT_FOUND) journal.unusable_ = kUnreadable;
  return journal;
}

// What differs, in words.
std::string Journal::other_settings(const Json& found, size_t shards) const {
  std::vector<std::string> differences;
  for (const auto& [name, now] : settings_.items()) {
    const auto then = found.is_object() ? found.find(name) : found.end();
    if (then == found.end() || *then == Json::parse(now.dump())) continue;
    const auto text = [](const auto& value) {
      return value.is_string() ? value.template get<std::string>() : value.dump();
    };
    differences.push_back(fmt::format("{} {}, now {}", name, text(*then), text(now)));
  }
  return fmt::format("{} shard{} of a stopped pack with other options ({})", shards, shards == 1 ? "" : "s",
                     differences.empty() ? "of another version" : fmt::format("{}", fmt::join(differences, "; ")));
}

std::string Journal::left_out() const {
  const std::string place = staging_->directory().string();
  if (!unusable_.empty()) return fmt::format("{}: not used, and packed again: {}", place, unusable_);
  std::vector<std::string> changed, damaged;
  for (const Entry& entry : entries_) {
    if (entry.index >= source_->tensor_files.size() || finished(entry.index)) continue;
    (has_same_source(entry) ? damaged : changed).push_back(source_->tensor_files[entry.index].path);
  }
  if (changed.empty() && damaged.empty()) return "";
  std::string reasons;
  if (!changed.empty()) reasons = some_of(changed) + " (changed or replaced since a pack that was stopped)";
  if (!damaged.empty())
    reasons += fmt::format("{}{} (its shard there is not whole)", reasons.empty() ? "" : ", ", some_of(damaged));
  return fmt::format("{}: packed again: {}", place, reasons);
}

void Journal::read(const std::string& text) {
  const auto document = parse_json_strict(text, "journal");
  unusable_ = kUnreadable;
  if (!document || !document.value().is_object()) return;
  const auto settings = document.value().find("settings");
  const auto shards = document.value().find("shards");
  if (settings == document.value().end() || shards == document.value().end() || !shards->is_array()) return;
  unusable_.clear();
  if (*settings != Json::parse(settings_.dump())) {
    unusable_ = other_settings(*settings, shards->size());
    return;
  }
  for (const Json& value : *shards) {
    auto entry = entry_from_json(value);
    if (entry) entries_.push_back(std::move(entry).value());
  }
}

Result<Journal::Entry> Journal::entry_from_json(const Json& value) {
  GLYD_TRY(JsonFields fields, JsonFields::of(value, "journal"));
  GLYD_TRY(const uint64_t index, fields.number("index"));
  GLYD_TRY(const Json* source, fields.object("source"));
  GLYD_TRY(const Json* shard_value, fields.object("shard"));
  GLYD_TRY(FinishedShard shard, shard_from_json(*shard_value));
  return Entry{index, OrderedJson(*source), std::move(shard)};
}

std::optional<FinishedShard> Journal::finished(size_t index) const {
  for (const Entry& entry : entries_) {
    if (entry.index != index || !has_same_source(entry) || !is_whole(entry.shard)) continue;
    return entry.shard;
  }
  return std::nullopt;
}

bool Journal::has_same_source(const Entry& entry) const { return Json(entry.source) == Json(describe(entry.index)); }

// The file was synced before the journal named it; its size and header are looked at all the same.
bool Journal::is_whole(const FinishedShard& shard) const {
  if (shard.shard.find('/') != std::string::npos) return false;
  const auto file = File::open_read(staging_->new_path() / shard.shard);
  if (!file || file.value().size() != shard.shard_bytes) return false;
  const auto header = read_safetensors_header(file.value());
  if (!header) return false;
  std::vector<uint8_t> bytes(header.value().data_offset());
  return file.value().read_at(0, bytes) && sha256_hex(bytes) == shard.shard_header_sha256;
}

Result<void> Journal::add(size_t index, const FinishedShard& shard) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.index == index; });
  entries_.push_back({index, describe(index), shard});
  OrderedJson shards = OrderedJson::array();
  for (const Entry& entry : entries_)
    shards.push_back({{"index", entry.index}, {"source", entry.source}, {"shard", shard_json(entry.shard)}});
  const OrderedJson document = {{"settings", settings_}, {"shards", std::move(shards)}};
  const auto fresh = staging_->directory() / "journal.json.new";
  std::error_code error;
  std::filesystem::remove(fresh, error);
  GLYD_CHECK(sync_directory(staging_->new_path()));
  GLYD_CHECK(write_new_file(fresh, as_bytes(document.dump())));
  std::filesystem::rename(fresh, staging_->journal_path(), error);
  if (error) return io_error("cannot write {}: {}", staging_->journal_path().string(), error.message());
  return sync_directory(staging_->directory());
}

}  // namespace glyd
