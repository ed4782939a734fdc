// reference_checkpoint.cpp - verifies and unpacks packed checkpoints. Section numbers are those of
// docs/spec/checkpoint.md.
#include <algorithm>
#include <fstream>
#include <set>

#include "glyd_reference.hpp"
#include "reference_manifest.hpp"

namespace glyd_reference {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, std::string_view bytes) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error(path.string() + ": cannot be written");
}

// ---- 2: shards ----

struct Shard {
  std::string bytes;
  std::map<std::string, std::string_view> data;  // by stored name
};

// Packs in the source's data order, then carried tensors in the same order. Tensors of no bytes have no order.
void check_shard_order(const Manifest& manifest, const SourceFile& file, const Safetensors& header,
                       const std::string& what) {
  std::pair<bool, std::pair<std::uint64_t, std::uint64_t>> previous{false, {0, 0}};
  std::map<std::string, const TensorEntry*> source;
  for (const auto& entry : file.tensors.tensors)
    source[stored_name(entry.name, manifest.tensors.at(entry.name))] = &entry;
  require(source.size() == file.tensors.tensors.size(), what + ": two tensors would have one name in the shard");
  require(header.tensors.size() == source.size(), what + ": tensors are missing or too many");
  require(header.header_order.size() == source.size() + 1 && header.header_order[0] == "__metadata__",
          what + ": __metadata__ is not first");
  for (const auto& entry : header.tensors) {
    const auto found = source.find(entry.name);
    require(found != source.end(), what + ": " + entry.name + ": not in the manifest");
    if (entry.begin == entry.end) continue;
    const bool is_carried = found->first == found->second->name;
    const std::pair place{is_carried, std::pair{found->second->begin, found->second->end}};
    require(previous <= place, what + ": " + entry.name + ": out of order");
    previous = place;
  }
  for (std::size_t i = 1; i < header.header_order.size(); ++i) {
    const auto& at_place = header.tensors[i - 1];
    const auto named = std::find_if(header.tensors.begin(), header.tensors.end(),
                                    [&](const auto& t) { return t.name == header.header_order[i]; });
    require(named->begin == at_place.begin && named->end == at_place.end, what + ": header is not in data order");
  }
}

void check_stored_entry(const TensorEntry& entry, const ManifestTensor& tensor, const std::string& what) {
  if (tensor.packed) {
    require(entry.dtype == "U8" && entry.shape == std::vector{tensor.pack.bytes},
            what + ": a pack is not U8 of the manifest's size");
  } else {
    require(entry.dtype == tensor.dtype && entry.shape == tensor.shape,
            what + ": dtype or shape is not the manifest's");
  }
}

Shard read_shard(const fs::path& directory, const Manifest& manifest, const SourceFile& file) {
  Shard shard{read_file(directory / file.shard), {}};
  const std::string& what = file.shard;
  require(shard.bytes.size() == file.shard_bytes, what + ": size is not the manifest's");
  require(shard.bytes.size() >= 8, what + ": shorter than its header's length");
  std::uint64_t header_bytes = 0;
  for (unsigned i = 0; i < 8; ++i) header_bytes |= std::uint64_t{static_cast<unsigned char>(shard.bytes[i])} << (8 * i);
  require(header_bytes <= std::min<std::uint64_t>(shard.bytes.size() - 8, kMaxHeaderBytes),
          what + ": header is longer than the file or 100 MB");
  const std::string_view all = shard.bytes;
  require(sha256_hex(as_bytes(all.substr(0, 8 + header_bytes))) == file.shard_header_sha256,
          what + ": header's hash is wrong");
  require((8 + header_bytes) % 128 == 0, what + ": data do not begin at a multiple of 128");
  const Safetensors header = read_safetensors_header(all.substr(8, header_bytes), what);
  require(8 + header_bytes + header.data_bytes == all.size(), what + ": data do not end with the file");
  require_members(header.metadata, what + ": __metadata__", {"format", "glyd"});
  require(member(header.metadata, "format").text == "pt" && member(header.metadata, "glyd").text == kFormat,
          what + ": __metadata__");
  check_shard_order(manifest, file, header, what);
  for (const auto& entry : header.tensors)
    shard.data[entry.name] = all.substr(8 + header_bytes + entry.begin, entry.end - entry.begin);
  for (const auto& entry : file.tensors.tensors) {
    const ManifestTensor& tensor = manifest.tensors.at(entry.name);
    const auto stored = std::find_if(header.tensors.begin(), header.tensors.end(),
                                     [&](const auto& t) { return t.name == stored_name(entry.name, tensor); });
    require(stored != header.tensors.end(), what + ": " + entry.name + ": missing");
    check_stored_entry(*stored, tensor, what + ": " + stored->name);
  }
  return shard;
}

// A tensor's bytes in the source, out of its pack.
std::string decode_packed(std::string_view pack, const ManifestTensor& tensor, const std::string& what) {
  Tensor decoded;
  try {
    decoded = decode_pack(as_bytes(pack));
  } catch (const Corrupt& error) {
    throw Corrupt(what + ": " + error.what());
  }
  const Header& header = decoded.header;
  const std::size_t dims = tensor.shape.size();
  const std::uint64_t a = tensor.shape[dims - 2], b = tensor.shape[dims - 1], stack = dims == 3 ? tensor.shape[0] : 1;
  const bool transposed = tensor.pack.transposed;
  require(header.transposed == transposed && header.stack == stack && header.rows == (transposed ? b : a) &&
              header.cols == (transposed ? a : b),
          what + ": the pack's shape is not the manifest's");
  std::map<std::string, std::uint64_t> parameters;
  if (header.layout == Layout::kFast) parameters = {{"base", header.base}, {"slot_bytes", header.slot_bytes}};
  if (header.layout == Layout::kSmall) parameters = {{"min_bits", header.min_bits}, {"symbols", header.symbols}};
  const std::string layout = header.layout == Layout::kRaw ? "raw" : header.layout == Layout::kFast ? "fast" : "small";
  require(layout == tensor.pack.layout && parameters == tensor.pack.parameters,
          what + ": the pack's layout or parameters are not the manifest's");
  std::string bytes;
  for (const std::uint16_t value : decoded.values) {
    bytes += static_cast<char>(value & 255);
    bytes += static_cast<char>(value >> 8);
  }
  return bytes;
}

// One source tensor file again.
std::string rebuild_source_file(const fs::path& directory, const Manifest& manifest, const SourceFile& file) {
  const Shard shard = read_shard(directory, manifest, file);
  std::string source;
  for (int shift = 0; shift < 64; shift += 8)
    source += static_cast<char>(std::uint64_t{file.header.size()} >> shift & 255);
  source += file.header;
  for (const auto& entry : file.tensors.tensors) {
    const ManifestTensor& tensor = manifest.tensors.at(entry.name);
    const std::string what = file.shard + ": " + entry.name;
    const std::string_view stored = shard.data.at(stored_name(entry.name, tensor));
    const std::string bytes = tensor.packed ? decode_packed(stored, tensor, what) : std::string(stored);
    require(sha256_hex(as_bytes(bytes)) == tensor.sha256, what + ": hash is wrong");
    source += bytes;
  }
  require(source.size() == file.bytes, file.path + ": size is not the manifest's");
  require(file.sha256.empty() || sha256_hex(as_bytes(source)) == file.sha256, file.path + ": hash is wrong");
  return source;
}

// ---- 5: everything else ----

void check_file(const fs::path& path, const std::string& sha256, std::uint64_t bytes) {
  const std::string text = read_file(path);
  require(text.size() == bytes, path.string() + ": size is not the manifest's");
  require(sha256_hex(as_bytes(text)) == sha256, path.string() + ": hash is wrong");
}

// glyd.safetensors.index.json: as transformers writes it.
void check_index(const fs::path& directory, const Manifest& manifest) {
  const std::string what = "glyd.safetensors.index.json", text = read_file(directory / what);
  require(sha256_hex(as_bytes(text)) == manifest.index_sha256, what + ": hash is wrong");
  const Json root = parse_json(text, what);
  require_members(root, what, {"metadata", "weight_map"});
  const Json& map = member(root, "weight_map");
  require(map.kind == Json::Kind::kObject && map.keys.size() == manifest.tensors.size(), what + ": weight_map");
  std::uint64_t total = 0;
  for (const auto& file : manifest.source_files) {
    for (const auto& entry : file.tensors.tensors) {
      const ManifestTensor& tensor = manifest.tensors.at(entry.name);
      total += tensor.packed ? tensor.pack.bytes : entry.end - entry.begin;
    }
  }
  require_members(member(root, "metadata"), what + ": metadata", {"total_size"});
  require(member(member(root, "metadata"), "total_size").text == std::to_string(total), what + ": total_size");
  for (const auto& [name, tensor] : manifest.tensors) {
    const Json* shard = map.find(stored_name(name, tensor));
    require(shard != nullptr && shard->text == manifest.source_files[tensor.file].shard,
            what + ": " + name + ": shard");
  }
}

// 4: what config.json says to a loader.
void check_config(const fs::path& directory, const Manifest& manifest) {
  const std::string text = read_file(directory / "config.json");
  require(sha256_hex(as_bytes(text)) == manifest.config_sha256, "config.json: hash is wrong");
  const Json root = parse_json(text, "config.json", true);
  const Json* added = root.find("quantization_config");
  require(added != nullptr, "config.json: no quantization_config");
  require_members(*added, "config.json: quantization_config", {"quant_method", "format", "layout", "glyd_version"});
  require(member(*added, "quant_method").text == "glyd" && member(*added, "format").text == kFormat &&
              member(*added, "layout").text == manifest.layout &&
              member(*added, "glyd_version").text == manifest.version,
          "config.json: quantization_config");
  check_file(directory / manifest.original_config.path, manifest.original_config.sha256,
             manifest.original_config.bytes);
}

void check_no_other_files(const fs::path& directory, const Manifest& manifest) {
  std::set<std::string> known{"glyd.json", "glyd.safetensors.index.json"};
  for (const auto& file : manifest.source_files) known.insert(file.shard);
  for (const auto& file : manifest.files) known.insert(file.path);
  if (manifest.has_config) known.insert({"config.json", "glyd-source/config.json"});
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_directory() && !entry.is_symlink()) continue;
    const std::string path =
        fs::relative(entry.path().parent_path(), directory).lexically_normal() / entry.path().filename();
    require(known.contains(fs::path(path).lexically_normal().string()),
            path + ": a file that the manifest does not name");
  }
}

Manifest check_all_but_shards(const fs::path& directory) {
  Manifest manifest = read_manifest(directory);
  check_no_other_files(directory, manifest);
  check_index(directory, manifest);
  if (manifest.has_config) check_config(directory, manifest);
  for (const auto& file : manifest.files) check_file(directory / file.path, file.sha256, file.bytes);
  return manifest;
}

void restore_file(const fs::path& from, const fs::path& to, std::uint64_t mode) {
  write_file(to, read_file(from));
  fs::permissions(to, static_cast<fs::perms>(mode));
}

}  // namespace

void verify_checkpoint(const fs::path& directory) {
  const Manifest manifest = check_all_but_shards(directory);
  for (const auto& file : manifest.source_files) rebuild_source_file(directory, manifest, file);
}

void unpack_checkpoint(const fs::path& directory, const fs::path& target) {
  if (fs::exists(fs::symlink_status(target))) throw std::runtime_error(target.string() + ": exists");
  verify_checkpoint(directory);
  const Manifest manifest = check_all_but_shards(directory);
  if (manifest.kind == "file") {
    write_file(target, rebuild_source_file(directory, manifest, manifest.source_files[0]));
    fs::permissions(target, static_cast<fs::perms>(manifest.source_files[0].mode));
    return;
  }
  fs::create_directories(target);
  for (const auto& file : manifest.source_files)
    write_file(target / file.path, rebuild_source_file(directory, manifest, file));
  for (const auto& file : manifest.files) restore_file(directory / file.path, target / file.path, file.mode);
  for (const auto& path : manifest.directories) fs::create_directories(target / path);
  if (manifest.has_config)
    restore_file(directory / manifest.original_config.path, target / "config.json", manifest.original_config.mode);
}

}  // namespace glyd_reference
