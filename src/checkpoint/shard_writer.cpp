#include "checkpoint/shard_writer.hpp"

#include <cstring>
#include <unordered_set>

#include "base/aligned_buffer.hpp"
#include "checkpoint/axis.hpp"
#include "checkpoint/batches.hpp"
#include "checkpoint/streams.hpp"
#include "format/json_text.hpp"
#include "weights/weights.hpp"

namespace glyd {
namespace {

// One packable tensor between being read and being written.
struct Work {
  const TensorEntry* entry = nullptr;
  AlignedBuffer bytes, pack;  // pack: empty if packing does not pay
  ManifestTensor result;
};

std::span<uint16_t> as_bf16(AlignedBuffer& buffer) {
  return {reinterpret_cast<uint16_t*>(buffer.data()), buffer.size() / 2};
}

PackedTensor packed_of(const PackHeader& header) {
  PackedTensor packed;
  packed.layout = header.layout;
  packed.transposed = header.transposed;
  packed.bytes = header.pack_bytes;
  packed.base = header.base;
  packed.slot_bytes = header.slot_bytes;
  packed.min_bits = header.min_bits;
  packed.symbols = header.symbols;
  return packed;
}

class ShardWriter {
 public:
  ShardWriter(const Source& source, size_t index, const ShardOptions& options, Progress& progress)
      : source_(source),
        file_(source.tensor_files[index]),
        header_(source.headers[index]),
        index_(index),
        options_(options),
        progress_(progress) {}

  Result<FinishedShard> write(const std::filesystem::path& path) {
    GLYD_CHECK(choose());
    GLYD_TRY(input_, File::open_read(file_.absolute));
    GLYD_CHECK(check_unchanged(file_, input_));  // its header was read from a file of this name, a while ago
    GLYD_TRY(output_, File::create(path));
    // The header's length is not known before the packs are: room for the longest possible is left, and filled with
    // spaces.
    const std::string room = write_safetensors_header(shard_metadata(), longest_entries());
    GLYD_CHECK(output_.write(as_bytes(room)));
    GLYD_CHECK(write_packs());
    GLYD_CHECK(write_carried());
    if (options_.hash_file) {
      GLYD_TRY(finished_.source_sha256, copy_range(input_, 0, input_.size(), nullptr, progress_, file_.path));
    }
    GLYD_CHECK(check_unchanged(file_, input_));
    const std::string header = write_safetensors_header(shard_metadata(), written_, room.size());
    if (header.size() != room.size())
      return internal("{}: shard header of {} bytes, {} kept free", path.string(), header.size(), room.size());
    GLYD_CHECK(output_.write_at(0, as_bytes(header)));
    finished_.shard = path.filename().string();
    finished_.shard_bytes = output_.written();
    finished_.shard_header_sha256 = sha256_hex(as_bytes(header));
    GLYD_CHECK(finish_file(output_, file_.mode | 0400));
    return std::move(finished_);
  }

 private:
  std::string place(const TensorEntry& entry) const {
    return fmt::format("{}: tensor {}", file_.absolute.string(), json_quote(entry.name));
  }

  Result<void> choose() {
    std::unordered_set<std::string_view> names;
    for (const auto& entry : header_.tensors) names.insert(entry.name);
    for (const auto& entry : header_.tensors) {
      if (!is_packable(entry)) continue;
      if (names.contains(entry.name + kPackSuffix)) {
        return unsupported("{}: the name {} beside it is the one that its pack would have", place(entry),
                           json_quote(entry.name + kPackSuffix));
      }
      candidates_.push_back(&entry);
    }
    return Ok{};
  }

  // Entries at least as long, in characters, as those that will be written.
  std::vector<TensorEntry> longest_entries() const {
    std::vector<TensorEntry> entries = header_.tensors;
    for (auto& entry : entries) {
      if (is_packable(entry)) {
        entry.shape.push_back(entry.bytes());
        entry.name += kPackSuffix;
      }
      entry.begin = entry.end = header_.data_bytes();  // packs are only kept where they are smaller
    }
    return entries;
  }

  Result<void> write_packs() {
    Work last;  // of a tensor that was alone, for its memory
    std::vector<uint64_t> sizes;
    for (const auto* entry : candidates_) sizes.push_back(entry->bytes());
    for (const auto& [begin, end] : make_batches(sizes)) {
      std::vector<Work> works(end - begin);
      const bool alone = works.size() == 1;
      if (alone) works[0] = std::move(last);
      for (size_t i = begin; i < end; ++i) works[i - begin].entry = candidates_[i];
      GLYD_CHECK(run_batch(0, works.size(), options_.threads, [&](size_t i, int threads) {
        const TensorEntry& entry = *works[i].entry;
        return naming_memory(place(entry), 3 * entry.bytes(), [&] {
          auto done = pack_one(works[i], threads);
          if (!alone) works[i].bytes = AlignedBuffer();
          return done;
        });
      }));
      for (auto& work : works) GLYD_CHECK(write_pack(work));
      if (alone) last = Work{nullptr, std::move(works[0].bytes), std::move(works[0].pack), {}};
    }
    return Ok{};
  }

  Result<void> pack_one(Work& work, int threads) const {
    const TensorEntry& entry = *work.entry;
    const bool transposed = is_stored_in_out(options_.model_type, entry.name, entry.shape.size());
    AlignedBuffer& bytes = work.bytes;
    bytes = AlignedBuffer(entry.bytes(), std::move(bytes));
    GLYD_CHECK(input_.read_at(header_.data_offset() + entry.begin, bytes.mutable_bytes()));
    HashTask hash(bytes.bytes(), resolve_threads(threads) > 1);
    auto packed = pack_tensor(as_bf16(bytes), grid_of(entry.shape, transposed), transposed, options_.layout, threads,
                              std::move(work.pack));
    work.pack = AlignedBuffer();
    if (!packed) return std::move(packed).at(place(entry)).error();
    work.result.file = index_;
    work.result.dtype = entry.dtype;
    work.result.shape = entry.shape;
    if (packed.value().size() < bytes.size()) {
      work.pack = std::move(packed).value();
      GLYD_TRY(const PackHeader header, read_pack_header(work.pack.bytes().first(kPackHeaderBytes), work.pack.size()));
      work.result.packed = packed_of(header);
      if (options_.verify) GLYD_CHECK(check_pack(work, as_bf16(bytes), threads));
    }
    work.result.sha256 = hash.get();
    return Ok{};
  }

  Result<void> check_pack(const Work& work, std::span<const uint16_t> expected, int threads) const {
    auto same = decodes_to(work.pack.bytes(), threads, expected);
    if (!same) return std::move(same).at(place(*work.entry)).error();
    if (!same.value()) {
      return mismatch("{}: its pack decodes to other bytes (bad memory, or a bug in this library); nothing was kept",
                      place(*work.entry));
    }
    return Ok{};
  }

  Result<void> write_pack(Work& work) {
    if (!work.result.packed) return Ok{};
    const TensorEntry& entry = *work.entry;
    TensorEntry packed{
        entry.name + kPackSuffix, find_dtype("U8"), {work.pack.size()}, offset_, offset_ + work.pack.size()};
    GLYD_CHECK(output_.write(work.pack.bytes()));
    offset_ = packed.end;
    written_.push_back(std::move(packed));
    packed_names_.insert(entry.name);
    finished_.tensors.emplace_back(entry.name, std::move(work.result));
    return progress_.advance(entry.bytes(), entry.name);
  }

  Result<void> write_carried() {
    for (const auto& entry : header_.tensors) {
      if (packed_names_.contains(entry.name)) continue;
      auto hash =
          copy_range(input_, header_.data_offset() + entry.begin, entry.bytes(), &output_, progress_, entry.name);
      if (!hash) return std::move(hash).error();
      TensorEntry carried = entry;
      carried.begin = offset_;
      offset_ = carried.end = offset_ + entry.bytes();
      written_.push_back(std::move(carried));
      finished_.tensors.emplace_back(
          entry.name, ManifestTensor{index_, entry.dtype, entry.shape, std::move(hash).value(), std::nullopt});
    }
    return Ok{};
  }

  const Source& source_;
  const SourceFile& file_;
  const SafetensorsHeader& header_;
  size_t index_;
  const ShardOptions& options_;
  Progress& progress_;
  File input_, output_;
  std::vector<const TensorEntry*> candidates_;
  std::unordered_set<std::string_view> packed_names_;
  std::vector<TensorEntry> written_;
  uint64_t offset_ = 0;
  FinishedShard finished_;
};

}  // namespace

bool is_packable(const TensorEntry& tensor) {
  if (std::string_view(tensor.dtype->name) != "BF16" || (tensor.shape.size() != 2 && tensor.shape.size() != 3) ||
      tensor.bytes() == 0)
    return false;
  return static_cast<bool>(check_shape(grid_of(tensor.shape, false))) &&
         static_cast<bool>(check_shape(grid_of(tensor.shape, true)));
}

Result<FinishedShard> write_shard(const Source& source, size_t index, const std::filesystem::path& path,
                                  const ShardOptions& options, Progress& progress) {
  return ShardWriter(source, index, options, progress).write(path);
}

}  // namespace glyd
