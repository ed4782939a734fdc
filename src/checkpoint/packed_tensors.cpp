// packed_tensors.cpp - the tensors of a shard, decoded, checked and handed on. Spec: docs/spec/checkpoint.md 2, 5.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/sha256.hpp"
#include "checkpoint/batches.hpp"
#include "checkpoint/packed_directory.hpp"
#include "checkpoint/streams.hpp"
#include "weights/weights.hpp"

namespace glyd {

// A large tensor that is decoded, handed on, and still being hashed while the next one is decoded.
struct PackedDirectory::Pending {
  const ShardTensor* tensor = nullptr;
  AlignedBuffer bytes;
  std::optional<HashTask> hash;  // after `bytes`: it is destroyed, and so waited for, first
};

namespace {

Result<void> hand_zeros(uint64_t bytes, const PackedDirectory::TensorWalk& walk) {
  const std::vector<uint8_t> zeros(std::min(bytes, kPieceBytes));
  for (uint64_t done = 0; done < bytes && walk.whole_only; done += zeros.size())
    GLYD_CHECK(walk.sink(ByteSpan(zeros).first(std::min<uint64_t>(zeros.size(), bytes - done))));
  return Ok{};
}

}  // namespace

std::string PackedDirectory::place(const Shard& shard, const ShardTensor& tensor) const {
  return fmt::format("{}: tensor {}", shard.file.path(), json_quote(tensor.source->name));
}

Error PackedDirectory::wrong_hash(const Shard& shard, const ShardTensor& tensor) const {
  return corrupt("{}: its bytes do not have the sha256 that {} gives: damaged; {}", place(shard, tensor), kManifestName,
                 kDamageRemedy);
}

Result<AlignedBuffer> PackedDirectory::load(const Shard& shard, const ShardTensor& tensor, int threads) const {
  if (tensor.bytes > shard.file.size() || tensor.offset > shard.file.size() - tensor.bytes)
    return corrupt("{}: its bytes lie behind the end of the file: truncated", place(shard, tensor));
  AlignedBuffer stored(tensor.bytes);
  GLYD_CHECK(shard.file.read_at(tensor.offset, stored.mutable_bytes()));
  if (!tensor.manifest->packed) return stored;
  GLYD_CHECK(match_pack(shard, tensor, stored.bytes().first(kPackHeaderBytes)));
  AlignedBuffer decoded(tensor.source->bytes());
  auto done =
      decode_tensor_checked(stored.bytes(), threads, {reinterpret_cast<uint16_t*>(decoded.data()), decoded.size() / 2});
  if (!done) return corrupt("{}: {}; {}", place(shard, tensor), done.error().message, kDamageRemedy);
  return decoded;
}

// Too large for memory's sake to be loaded whole, so what may hand on whole tensors only reads it twice.
Result<void> PackedDirectory::stream_carried(const Shard& shard, const ShardTensor& tensor, Progress& progress,
                                             const TensorWalk& walk) const {
  std::vector<uint8_t> piece(kPieceBytes);
  const auto pass = [&](const Sink& sink) -> Result<void> {
    Sha256 hash;
    for (uint64_t done = 0; done < tensor.bytes;) {
      const MutableByteSpan part(piece.data(), std::min<uint64_t>(piece.size(), tensor.bytes - done));
      GLYD_CHECK(shard.file.read_at(tensor.offset + done, part));
      hash.update(part);
      GLYD_CHECK(sink(part));
      done += part.size();
    }
    return hash.hex() == tensor.manifest->sha256 ? Ok{} : Result<void>(wrong_hash(shard, tensor));
  };
  const auto counted = [&](ByteSpan part) -> Result<void> {
    GLYD_CHECK(walk.sink(part));
    return progress.advance(part.size(), tensor.source->name);
  };
  if (!walk.whole_only) return pass(counted);
  GLYD_CHECK(pass([](ByteSpan) -> Result<void> { return Ok{}; }));
  return pass(counted);
}

// The large tensor before this one: is its hash right?
Result<void> PackedDirectory::settle(const Shard& shard, Pending& pending, const TensorWalk& walk) const {
  if (!pending.hash) return Ok{};
  const bool same = pending.hash->get() == pending.tensor->manifest->sha256;
  pending.hash.reset();
  pending.bytes = AlignedBuffer();
  if (same) return Ok{};
  if (!walk.on_fault) return wrong_hash(shard, *pending.tensor);
  walk.on_fault(*pending.tensor, wrong_hash(shard, *pending.tensor));
  return Ok{};
}

Result<void> PackedDirectory::check_batch(const Shard& shard, size_t begin, size_t end, int threads, Progress& progress,
                                          const TensorWalk& walk, Pending& pending) const {
  const bool alone = end - begin == 1 && !walk.whole_only && resolve_threads(threads) > 1;
  std::vector<AlignedBuffer> loaded(end - begin);
  std::vector<std::optional<Error>> faults(end - begin);
  GLYD_CHECK(run_batch(0, end - begin, threads, [&](size_t i, int inner_threads) -> Result<void> {
    const ShardTensor& tensor = shard.tensors[begin + i];
    const uint64_t needed = tensor.bytes + tensor.source->bytes();
    const auto load_checked = [&]() -> Result<void> {
      GLYD_TRY(loaded[i], load(shard, tensor, inner_threads));
      if (alone || sha256_hex(loaded[i].bytes()) == tensor.manifest->sha256) return Ok{};
      return wrong_hash(shard, tensor);
    };
    auto done = naming_memory(place(shard, tensor), needed, load_checked);
    if (done || !walk.on_fault || !is_fault(done.error())) return done;
    faults[i] = std::move(done).error();
    return Ok{};
  }));
  GLYD_CHECK(settle(shard, pending, walk));
  for (size_t i = 0; i < loaded.size(); ++i) {
    const ShardTensor& tensor = shard.tensors[begin + i];
    if (faults[i]) {
      walk.on_fault(tensor, *std::move(faults[i]));
      GLYD_CHECK(hand_zeros(tensor.source->bytes(), walk));
    } else {
      if (alone) pending.tensor = &tensor, pending.bytes = std::move(loaded[i]);
      const AlignedBuffer& bytes = alone ? pending.bytes : loaded[i];
      if (alone) pending.hash.emplace(bytes.bytes(), true);
      GLYD_CHECK(walk.sink(bytes.bytes()));
    }
    GLYD_CHECK(progress.advance(tensor.source->bytes(), tensor.source->name));
  }
  return Ok{};
}

Result<void> PackedDirectory::check_tensors(const Shard& shard, int threads, Progress& progress,
                                            const TensorWalk& walk) const {
  std::vector<uint64_t> sizes;
  for (const auto& tensor : shard.tensors) sizes.push_back(tensor.source->bytes());
  Pending pending;
  for (const auto& [begin, end] : make_batches(sizes)) {
    const ShardTensor& first = shard.tensors[begin];
    if (first.manifest->packed || sizes[begin] < kAloneBytes) {
      GLYD_CHECK(check_batch(shard, begin, end, threads, progress, walk, pending));
      continue;
    }
    auto done = stream_carried(shard, first, progress, walk);
    if (done) continue;
    if (!walk.on_fault || !is_fault(done.error())) return done;
    walk.on_fault(first, std::move(done).error());
    GLYD_CHECK(hand_zeros(first.source->bytes(), walk));
  }
  return settle(shard, pending, walk);
}

}  // namespace glyd
