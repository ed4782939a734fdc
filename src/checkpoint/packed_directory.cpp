#include "checkpoint/packed_directory.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/sha256.hpp"
#include "checkpoint/batches.hpp"
#include "checkpoint/shard_writer.hpp"
#include "checkpoint/source.hpp"
#include "checkpoint/streams.hpp"
#include "weights/weights.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

// A large tensor that is decoded, handed on, and still being hashed while the next one is decoded.
struct Pending {
  const ShardTensor* tensor = nullptr;
  AlignedBuffer bytes;
  std::optional<HashTask> hash;  // after `bytes`: it is destroyed, and so waited for, first
};

Result<std::string> read_text(const File& file, uint64_t offset, uint64_t bytes) {
  std::string text(bytes, '\0');
  GLYD_CHECK(file.read_at(offset, MutableByteSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  return text;
}

}  // namespace

bool looks_packed(const fs::path& directory) {
  const auto text = read_text_file(directory / kManifestName, kMostManifestBytes);
  if (!text) return false;
  const auto document = parse_json_strict(text.value(), kManifestName);
  return document && document.value().is_object() && document.value().contains("format") &&
         document.value()["format"] == kCheckpointFormat;
}

Result<PackedDirectory> PackedDirectory::open(const std::string& text) {
  GLYD_TRY(const Source place, locate_source(text, nullptr));
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
  GLYD_TRY(packed.manifest_, parse_manifest(manifest_text.value(), path.string(), packed.headers_));
  return packed;
}

std::string PackedDirectory::place(const Shard& shard, const ShardTensor& tensor) const {
  return fmt::format("{}: tensor {}", shard.file.path(), json_quote(tensor.source->name));
}

Error PackedDirectory::wrong_hash(const Shard& shard, const ShardTensor& tensor) const {
  return corrupt("{}: its bytes do not have the sha256 that {} gives: damaged; fetch or pack it again",
                 place(shard, tensor), kManifestName);
}

Result<Shard> PackedDirectory::open_shard(size_t index) const {
  const ManifestSourceFile& file = manifest_.source_files[index];
  Shard shard;
  shard.index = index;
  GLYD_TRY(shard.file, File::open_read(root_ / file.shard));
  if (shard.file.size() != file.shard_bytes) {
    return corrupt("{}: {} bytes, but {} gives {}: truncated or damaged", shard.file.path(), shard.file.size(),
                   kManifestName, file.shard_bytes);
  }
  GLYD_TRY(const SafetensorsHeader header, read_safetensors_header(shard.file));
  GLYD_TRY(const std::string head, read_text(shard.file, 0, header.data_offset()));
  if (head.compare(8, std::string::npos, header.text) != 0 || sha256_hex(as_bytes(head)) != file.shard_header_sha256) {
    return corrupt("{}: its header does not have the sha256 that {} gives: damaged", shard.file.path(), kManifestName);
  }
  GLYD_CHECK(match_header(header, shard));
  for (const ShardTensor& tensor : shard.tensors) {
    if (!tensor.manifest->packed) continue;
    uint8_t header_bytes[kPackHeaderBytes];
    GLYD_CHECK(shard.file.read_at(tensor.offset, header_bytes));
    GLYD_CHECK(match_pack(shard, tensor, header_bytes));
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

Result<AlignedBuffer> PackedDirectory::load(const Shard& shard, const ShardTensor& tensor, int threads) const {
  AlignedBuffer stored(tensor.bytes);
  GLYD_CHECK(shard.file.read_at(tensor.offset, stored.mutable_bytes()));
  if (!tensor.manifest->packed) return stored;
  GLYD_CHECK(match_pack(shard, tensor, stored.bytes().first(kPackHeaderBytes)));
  AlignedBuffer decoded(tensor.source->bytes());
  auto done =
      decode_tensor_checked(stored.bytes(), threads, {reinterpret_cast<uint16_t*>(decoded.data()), decoded.size() / 2});
  if (!done) return std::move(done).at(place(shard, tensor)).error();
  return decoded;
}

Result<void> PackedDirectory::stream_carried(const Shard& shard, const ShardTensor& tensor, Progress& progress,
                                             const Sink& sink) const {
  std::vector<uint8_t> piece(kPieceBytes);
  Sha256 hash;
  for (uint64_t done = 0; done < tensor.bytes;) {
    const MutableByteSpan part(piece.data(), std::min<uint64_t>(piece.size(), tensor.bytes - done));
    GLYD_CHECK(shard.file.read_at(tensor.offset + done, part));
    hash.update(part);
    GLYD_CHECK(sink(part));
    done += part.size();
    GLYD_CHECK(progress.advance(part.size(), tensor.source->name));
  }
  if (hash.hex() != tensor.manifest->sha256) return wrong_hash(shard, tensor);
  return Ok{};
}

Result<void> PackedDirectory::check_tensors(const Shard& shard, int threads, Progress& progress,
                                            const Sink& sink) const {
  std::vector<uint64_t> sizes;
  for (const auto& tensor : shard.tensors) sizes.push_back(tensor.source->bytes());
  Pending pending;
  const auto settle = [&]() -> Result<void> {
    if (!pending.hash) return Ok{};
    if (pending.hash->get() != pending.tensor->manifest->sha256) return wrong_hash(shard, *pending.tensor);
    pending.hash.reset();
    pending.bytes = AlignedBuffer();
    return Ok{};
  };
  for (const auto& [begin, end] : make_batches(sizes)) {
    const ShardTensor& first = shard.tensors[begin];
    if (!first.manifest->packed && sizes[begin] >= kAloneBytes) {
      GLYD_CHECK(stream_carried(shard, first, progress, sink));
      continue;
    }
    const bool alone = end - begin == 1 && resolve_threads(threads) > 1;
    std::vector<AlignedBuffer> loaded(end - begin);
    GLYD_CHECK(run_batch(0, end - begin, threads, [&, begin = begin](size_t i, int inner_threads) -> Result<void> {
      const ShardTensor& tensor = shard.tensors[begin + i];
      const uint64_t needed = tensor.bytes + tensor.source->bytes();
      GLYD_TRY(loaded[i],
               naming_memory(place(shard, tensor), needed, [&] { return load(shard, tensor, inner_threads); }));
      if (!alone && sha256_hex(loaded[i].bytes()) != tensor.manifest->sha256) return wrong_hash(shard, tensor);
      return Ok{};
    }));
    GLYD_CHECK(settle());
    for (size_t i = 0; i < loaded.size(); ++i) {
      if (alone) pending = {&first, std::move(loaded[i]), std::nullopt};
      const AlignedBuffer& bytes = alone ? pending.bytes : loaded[i];
      if (alone) pending.hash.emplace(bytes.bytes(), true);
      GLYD_CHECK(sink(bytes.bytes()));
      GLYD_CHECK(progress.advance(bytes.size(), shard.tensors[begin + i].source->name));
    }
  }
  return settle();
}

Result<void> PackedDirectory::check_listing() const {
  std::set<std::string> expected = {kManifestName, kShardIndexName};
  for (const auto& file : manifest_.source_files) expected.insert(file.shard);
  for (const auto& file : manifest_.files) expected.insert(file.path);
  if (manifest_.config) expected.insert({kConfigName, kKeptConfigName});
  GLYD_TRY(const Listing listing, list_directory(root_));
  for (const auto& file : listing.files) {
    if (expected.erase(file.path) == 0) {
      return corrupt(
          "{}: not a file of this checkpoint ({} does not name it); remove it, or pack again with it in the source",
          (root_ / file.path).string(), kManifestName);
    }
  }
  if (!expected.empty())
    return corrupt("{}: missing, though {} names it", (root_ / *expected.begin()).string(), kManifestName);
  return Ok{};
}

uint64_t PackedDirectory::listed_files() const {
  return 2 + manifest_.source_files.size() + manifest_.files.size() + (manifest_.config ? 2 : 0);
}

uint64_t PackedDirectory::source_bytes() const {
  uint64_t total = manifest_.config ? manifest_.config->original_bytes : 0;
  for (const auto& file : manifest_.source_files) total += file.bytes;
  for (const auto& file : manifest_.files) total += file.bytes;
  return total;
}

}  // namespace glyd
