#include "checkpoint/packed_directory.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/sha256.hpp"
#include "checkpoint/foreign.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/safetensors_file.hpp"
#include "checkpoint/shard_writer.hpp"
#include "checkpoint/source.hpp"
#include "checkpoint/streams.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

Result<std::string> read_text(const File& file, uint64_t offset, uint64_t bytes) {
  std::string text(bytes, '\0');
  GLYD_CHECK(file.read_at(offset, MutableByteSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  return text;
}

// Bytes of a shard's length and header; 0 if they cannot be.
Result<uint64_t> header_bytes(const File& file) {
  uint8_t length_bytes[8];
  if (file.size() < sizeof length_bytes) return uint64_t{0};
  GLYD_CHECK(file.read_at(0, length_bytes));
  const auto length = load_le<uint64_t>(length_bytes);
  return length > kMostHeaderBytes || length > file.size() - 8 ? uint64_t{0} : 8 + length;
}

}  // namespace

bool looks_packed(const fs::path& directory) {
  const auto text = read_text_file(directory / kManifestName, kMostManifestBytes);
  if (!text) return false;
  const auto document = parse_json_strict(text.value(), kManifestName);
  return document && document.value().is_object() && document.value().contains("format") &&
         document.value()["format"] == kCheckpointFormat;
}

Result<PackedDirectory> PackedDirectory::open(const std::string& text, Faults* faults) {
  GLYD_TRY(const Source place, locate_packed(text));
  if (place.is_file) return invalid_argument("{}: a file, not the directory of a packed checkpoint", text);
  PackedDirectory packed;
  packed.root_ = place.root;
  const fs::path path = packed.root_ / kManifestName;
  auto manifest_text = read_text_file(path, kMostManifestBytes);
  if (!manifest_text && manifest_text.error().status == GLYD_ERROR_NOT_FOUND) {
    return not_found("{}: no {} in it: not a packed checkpoint (glyd pack makes one)", packed.root_.string(),
                     kManifestName);
  }
  if (!manifest_text) return std::move(manifest_text).error();
  std::optional<Error> wrong_hash;
  auto manifest = parse_manifest(manifest_text.value(), path.string(), packed.headers_, faults ? &wrong_hash : nullptr);
  if (!manifest && manifest.error().status == GLYD_ERROR_CORRUPT)
    return corrupt("{}; fetch this file again, or pack the source again", manifest.error().message);
  if (!manifest) return std::move(manifest).error();
  if (wrong_hash) faults->add(*std::move(wrong_hash));
  packed.manifest_ = std::move(manifest).value();
  return packed;
}

Result<Shard> PackedDirectory::open_shard(size_t index) const {
  const ManifestSourceFile& file = manifest_.source_files[index];
  Shard shard;
  shard.index = index;
  auto opened = File::open_read(root_ / file.shard);
  if (!opened && opened.error().status == GLYD_ERROR_NOT_FOUND)
    return corrupt("{}: missing, though {} names it; {}", (root_ / file.shard).string(), kManifestName, kDamageRemedy);
  if (!opened) return std::move(opened).error();
  shard.file = std::move(opened).value();
  if (shard.file.size() != file.shard_bytes) {
    return corrupt("{}: {} bytes, but {} gives {}: truncated or damaged; {}", shard.file.path(), shard.file.size(),
                   kManifestName, file.shard_bytes, kDamageRemedy);
  }
  // The hash first: what a damaged header seems to say is nothing to report.
  GLYD_TRY(const uint64_t head_bytes, header_bytes(shard.file));
  GLYD_TRY(const std::string head, read_text(shard.file, 0, head_bytes));
  if (head.empty() || sha256_hex(as_bytes(head)) != file.shard_header_sha256) {
    return corrupt("{}: its header does not have the sha256 that {} gives: damaged; {}", shard.file.path(),
                   kManifestName, kDamageRemedy);
  }
  GLYD_TRY(const SafetensorsHeader header, read_safetensors_header(shard.file));
  GLYD_CHECK(match_header(header, shard));
  for (const ShardTensor& tensor : shard.tensors) {
    if (!tensor.manifest->packed) continue;
    uint8_t header_bytes[kPackHeaderBytes];
    GLYD_CHECK(shard.file.read_at(tensor.offset, header_bytes));
    GLYD_CHECK(match_pack(shard, tensor, header_bytes));
  }
  return shard;
}

Result<void> PackedDirectory::check_index_hash() const {
  const fs::path path = root_ / kShardIndexName;
  auto text = read_text_file(path, kMostManifestBytes);
  if (!text && text.error().status == GLYD_ERROR_NOT_FOUND)
    return corrupt("{}: missing, though {} names it; {}", path.string(), kManifestName, kDamageRemedy);
  if (!text) return std::move(text).error();
  if (sha256_hex(as_bytes(text.value())) == manifest_.index_sha256) return Ok{};
  return corrupt("{}: does not have the sha256 that {} gives: damaged; {}", path.string(), kManifestName,
                 kDamageRemedy);
}

bool PackedDirectory::config_changed() const {
  std::error_code error;
  const fs::path path = root_ / kConfigName;
  if (!manifest_.config) return fs::exists(path, error);
  const auto text = read_text_file(path, 2 * kMostConfigBytes);
  return !text || sha256_hex(as_bytes(text.value())) != manifest_.config->sha256;
}

Result<Shard> PackedDirectory::open_damaged_shard(size_t index) const {
  const ManifestSourceFile& file = manifest_.source_files[index];
  Shard shard;
  shard.index = index;
  GLYD_TRY(shard.file, File::open_read(root_ / file.shard));
  uint64_t total = 0;
  for (const auto& entry : headers_[index].tensors) {
    const ManifestTensor& tensor = manifest_.tensors.find(entry.name)->second;
    shard.tensors.push_back({&entry, &tensor, 0, tensor.packed ? tensor.packed->bytes : entry.bytes()});
    if (!checked_add(total, shard.tensors.back().bytes, total)) total = file.shard_bytes;
  }
  if (total >= file.shard_bytes)
    return corrupt("{}: {} gives it fewer bytes than its tensors have", shard.file.path(), kManifestName);
  uint64_t next = file.shard_bytes - total;  // behind the header, whose length is what is left over
  for (const bool packs : {true, false}) {
    for (ShardTensor& tensor : shard.tensors) {
      if (tensor.manifest->packed.has_value() != packs) continue;
      tensor.offset = next;
      next += tensor.bytes;
    }
  }
  return shard;
}

// The shard must hold what the manifest says in the order of the spec: packs, then carried tensors, both in the
// source's order. Tensors of no bytes have no order.
Result<void> PackedDirectory::match_header(const SafetensorsHeader& header, Shard& shard) const {
  const auto& source = headers_[shard.index].tensors;
  const std::string& path = shard.file.path();
  if (header.data_offset() % kPackAlignment != 0)
    return corrupt("{}: its data does not start at a multiple of {}", path, kPackAlignment);
  if (header.metadata != shard_metadata())
    return corrupt("{}: its __metadata__ is not that of a shard of {}", path, kCheckpointFormat);
  if (!header.in_data_order)
    return corrupt("{}: its header does not name __metadata__ first and then the tensors as their data lie", path);
  if (header.tensors.size() != source.size())
    return corrupt("{}: {} tensors, {} expected", path, header.tensors.size(), source.size());
  for (const auto& entry : source) shard.tensors.push_back({&entry, &manifest_.tensors.find(entry.name)->second, 0, 0});
  std::map<std::string_view, const TensorEntry*> empty;
  std::vector<const TensorEntry*> filled;
  for (const auto& entry : header.tensors) {
    if (entry.bytes() == 0) {
      empty.emplace(entry.name, &entry);
    } else {
      filled.push_back(&entry);
    }
  }
  size_t next = 0;
  for (const bool packs : {true, false}) {
    for (ShardTensor& tensor : shard.tensors) {
      if (tensor.manifest->packed.has_value() != packs) continue;
      const std::string name = packs ? tensor.source->name + kPackSuffix : tensor.source->name;
      const TensorEntry* found = nullptr;
      if (tensor.source->bytes() != 0) {
        found = next < filled.size() ? filled[next++] : nullptr;
      } else if (const auto place = empty.find(name); place != empty.end()) {
        found = place->second;
      }
      if (found == nullptr || found->name != name)
        return corrupt("{}: tensor {} is not at its place", path, json_quote(name));
      const bool same = packs ? found->dtype == find_dtype("U8") &&
                                    found->shape == std::vector<uint64_t>{tensor.manifest->packed->bytes}
                              : found->dtype == tensor.manifest->dtype && found->shape == tensor.manifest->shape;
      if (!same)
        return corrupt("{}: tensor {}: dtype or shape is not what {} says", path, json_quote(name), kManifestName);
      tensor.offset = header.data_offset() + found->begin;
      tensor.bytes = found->bytes();
    }
  }
  return Ok{};
}

Result<void> PackedDirectory::match_pack(const Shard& shard, const ShardTensor& tensor, ByteSpan header_bytes) const {
  auto read = read_pack_header(header_bytes, tensor.bytes);
  if (!read && read.error().status == GLYD_ERROR_CORRUPT)
    return corrupt("{}: {}; {}", place(shard, tensor), read.error().message, kDamageRemedy);
  if (!read) return std::move(read).at(place(shard, tensor)).error();
  const PackHeader& header = read.value();
  const PackedTensor& packed = *tensor.manifest->packed;
  const Grid grid = grid_of(tensor.manifest->shape, packed.transposed);
  if (header.layout != packed.layout || header.transposed != packed.transposed || header.grid.stack != grid.stack ||
      header.grid.rows != grid.rows || header.grid.cols != grid.cols) {
    return corrupt("{}: the pack's layout, axis or shape is not what {} says", place(shard, tensor), kManifestName);
  }
  if (header.base != packed.base || header.slot_bytes != packed.slot_bytes || header.min_bits != packed.min_bits ||
      header.symbols != packed.symbols) {
    return corrupt("{}: the pack's parameters are not what {} says", place(shard, tensor), kManifestName);
  }
  return Ok{};
}

std::set<std::string> PackedDirectory::named_files() const {
  std::set<std::string> names = {kManifestName, kShardIndexName};
  for (const auto& file : manifest_.source_files) names.insert(file.shard);
  for (const auto& file : manifest_.files) names.insert(file.path);
  if (manifest_.config) names.insert({kConfigName, kKeptConfigName});
  return names;
}

Result<std::vector<std::string>> PackedDirectory::foreign_files(std::vector<std::string>& ignored) const {
  const std::set<std::string> named = named_files();
  const auto skip = [&](const std::string& path) {
    const auto below = named.lower_bound(path + "/");
    const bool holds_named = below != named.end() && below->starts_with(path + "/");
    if (named.contains(path) || holds_named || !is_housekeeping(path)) return false;
    ignored.push_back(path);
    return true;
  };
  GLYD_TRY(const Listing listing, list_directory(root_, skip));
  std::vector<std::string> foreign;
  for (const auto& file : listing.files) {
    if (!named.contains(file.path)) foreign.push_back(file.path);
  }
  return foreign;
}

uint64_t PackedDirectory::source_files() const {
  return manifest_.source_files.size() + manifest_.files.size() + (manifest_.config ? 1 : 0);
}

uint64_t PackedDirectory::source_bytes() const {
  uint64_t total = manifest_.config ? manifest_.config->original_bytes : 0;
  for (const auto& file : manifest_.source_files) total += file.bytes;
  for (const auto& file : manifest_.files) total += file.bytes;
  return total;
}

}  // namespace glyd
