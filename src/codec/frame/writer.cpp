#include "codec/frame/writer.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/parallel.hpp"

namespace glyd::codec {

// A unit starts with nothing to match: at max, 4 MiB cost 1% more bytes than 8.
int default_unit_log(Level level) { return level == Level::kUltra ? 25 : level == Level::kMax ? 23 : 22; }

uint64_t frame_bound(uint64_t content_bytes, int unit_log, uint64_t metadata_bytes) {
  const uint64_t units = content_bytes / (uint64_t{1} << unit_log) + 1;
  uint64_t bound = 0;
  const uint64_t fixed = kFrameHeaderBytes + kFrameFooterBytes + 2 * kChunkHeaderBytes + 16 + metadata_bytes;
  if (!checked_add(content_bytes, units * (kChunkHeaderBytes + 8) + fixed, bound)) return UINT64_MAX;
  return bound;
}

FrameWriter::FrameWriter(WriterOptions options, Sink sink) : options_(std::move(options)), sink_(std::move(sink)) {
  if (options_.unit_log == 0) options_.unit_log = default_unit_log(options_.level);
  unit_bytes_ = size_t{1} << options_.unit_log;
  options_.threads = resolve_threads(options_.threads);
}

Result<void> FrameWriter::emit(ByteSpan bytes) {
  frame_bytes_ += bytes.size();
  return sink_(bytes);
}

Result<void> FrameWriter::begin() {
  if (options_.unit_log < kMinUnitLog || options_.unit_log > kMaxUnitLog) {
    return invalid_argument("unit size 2^{}: 2^{} to 2^{} bytes are allowed", options_.unit_log, kMinUnitLog,
                            kMaxUnitLog);
  }
  if (options_.metadata.size() > kMaxMetadataBytes)
    return invalid_argument("metadata of {} bytes: at most {} are allowed", options_.metadata.size(),
                            kMaxMetadataBytes);
  if (options_.content_bytes && *options_.content_bytes > kMaxContentBytes)
    return invalid_argument("content of {} bytes: at most {} are allowed", *options_.content_bytes, kMaxContentBytes);
  uint8_t header[kFrameHeaderBytes];
  write_frame_header({.unit_log = options_.unit_log,
                      .level = static_cast<uint8_t>(options_.level),
                      .content_bytes = options_.content_bytes.value_or(kUnknownSize)},
                     header);
  GLYD_CHECK(emit(header));
  if (options_.metadata.empty()) return {};
  uint8_t chunk[kChunkHeaderBytes];
  const auto bytes = static_cast<uint32_t>(options_.metadata.size());
  write_chunk_header({.kind = ChunkKind::kMetadata, .stored_bytes = bytes, .payload_check = check32(options_.metadata)},
                     chunk);
  GLYD_CHECK(emit(chunk));
  entries_.push_back({0, bytes});
  return emit(options_.metadata);
}

void FrameWriter::encode_unit(UnitEncoder& encoder, ByteSpan raw, uint64_t position, Slot& slot) const {
  const size_t capacity = kChunkHeaderBytes + UnitEncoder::bound(raw.size());
  if (slot.capacity < capacity) {
    slot.chunk = std::make_unique_for_overwrite<uint8_t[]>(capacity);
    slot.capacity = capacity;
  }
  uint8_t* const payload = slot.chunk.get() + kChunkHeaderBytes;
  size_t stored = encoder.write(raw, payload, tensors_, position);
  slot.header = {.kind = stored == 0 ? ChunkKind::kStored : ChunkKind::kBlocks,
                 .position = position,
                 .raw_bytes = static_cast<uint32_t>(raw.size()),
                 .content_check = static_cast<uint32_t>(encoder.content_hash())};
  if (stored == 0) {
    std::memcpy(payload, raw.data(), raw.size());
    stored = raw.size();
  }
  slot.header.stored_bytes = static_cast<uint32_t>(stored);
  slot.header.payload_check =
      slot.header.kind == ChunkKind::kStored ? slot.header.content_check : check32({payload, stored});
  write_chunk_header(slot.header, slot.chunk.get());
  slot.bytes = kChunkHeaderBytes + stored;
}

Result<void> FrameWriter::emit_unit(const Slot& slot) {
  GLYD_CHECK(emit({slot.chunk.get(), slot.bytes}));
  entries_.push_back({slot.header.raw_bytes, slot.header.stored_bytes});
  whole_.add(slot.header.raw_bytes, slot.header.content_check);
  content_bytes_ += slot.header.raw_bytes;
  if (options_.progress && !options_.progress(content_bytes_)) return cancelled("stopped by the caller");
  return {};
}

// A batch of units side by side. Their chunks leave in order, from the caller's thread alone: whenever it has coded a
// unit, and at the end. The others wait for it only where they are kMostAhead units ahead of the last chunk that left.
Result<void> FrameWriter::encode_units(ByteSpan content) {
  constexpr size_t kMostAhead = 4;  // for each thread
  const size_t units = ceil_div(content.size(), unit_bytes_);
  const size_t most_ahead = kMostAhead * static_cast<size_t>(options_.threads);
  const uint64_t position = content_bytes_;
  if (position == 0 && options_.level != Level::kDefault)
    tensors_ = TensorMap::of(content.first(std::min(unit_bytes_, content.size())));
  std::vector<std::optional<Slot>> coded(units);
  std::mutex mutex;  // of `coded`, what is at rest and the next four
  size_t begun = 0, emitted = 0;
  bool thrown = false;
  Result<void> outcome;
  std::condition_variable room;
  const auto emit_coded = [&] {
    for (std::unique_lock lock(mutex); outcome && emitted < units && coded[emitted]; ++emitted, room.notify_all()) {
      Slot slot = std::move(*coded[emitted]);
      lock.unlock();
      Result<void> done = emit_unit(slot);
      lock.lock();
      outcome = std::move(done);
      slots_.push_back(std::move(slot));
    }
    room.notify_all();
  };
  const auto caller = std::this_thread::get_id();
  const auto encode = [&](size_t i) {
    const bool on_caller = std::this_thread::get_id() == caller;
    std::optional<UnitEncoder> encoder;
    Slot slot;
    {
      std::unique_lock lock(mutex);
      if (++begun == units) room.notify_all();  // no more to come: the caller may be done, and wait for these
      room.wait(lock, [&] { return on_caller || i < emitted + most_ahead || begun == units || !outcome || thrown; });
      if (!outcome || thrown) return;
      if (!encoders_.empty()) encoder.emplace(std::move(encoders_.back())), encoders_.pop_back();
      if (!slots_.empty()) slot = std::move(slots_.back()), slots_.pop_back();
    }
    if (!encoder) encoder.emplace(options_.level);
    const size_t at = i * unit_bytes_;
    encode_unit(*encoder, content.subspan(at, std::min(unit_bytes_, content.size() - at)), position + at, slot);
    {
      const std::lock_guard lock(mutex);
      coded[i].emplace(std::move(slot));
      encoders_.push_back(std::move(*encoder));
    }
    if (on_caller) emit_coded();
  };
  parallel_for(units, 1, options_.threads, [&](uint64_t begin, uint64_t end) {
    try {
      for (uint64_t i = begin; i < end; ++i) encode(i);
    } catch (...) {  // out of memory: nobody may wait for what will not come
      const std::lock_guard lock(mutex);
      thrown = true;
      room.notify_all();
      throw;
    }
  });
  emit_coded();
  return outcome;
}

Result<void> FrameWriter::write(ByteSpan content) {
  if (content.size() > kMaxContentBytes - content_bytes_ - pending_.size())
    return invalid_argument("more than {} bytes of content", kMaxContentBytes);
  const size_t batch = unit_bytes_ * static_cast<size_t>(options_.threads);
  while (!content.empty()) {
    if (pending_.empty() && content.size() >= batch) {
      const size_t whole_units = std::min(content.size() / batch * batch, batch_in_memory());
      GLYD_CHECK(encode_units(content.first(whole_units)));
      content = content.subspan(whole_units);
      continue;
    }
    const size_t taken = std::min(batch - pending_.size(), content.size());
    pending_.insert(pending_.end(), content.begin(), content.begin() + static_cast<ptrdiff_t>(taken));
    content = content.subspan(taken);
    if (pending_.size() == batch) {
      GLYD_CHECK(encode_units(pending_));
      pending_.clear();
    }
  }
  return {};
}

// Units differ in the time they take: many for each thread leave less of it waiting for the last of a batch. Content
// that lies in memory costs no room but for the chunks, and of those few are there at a time.
size_t FrameWriter::batch_in_memory() const {
  constexpr size_t kMostUnits = 16, kMostBytes = 512 << 20;  // a thread
  const size_t units = options_.threads == 1 ? 1 : std::clamp<size_t>(kMostBytes / unit_bytes_, 1, kMostUnits);
  return unit_bytes_ * units * static_cast<size_t>(options_.threads);
}

Result<void> FrameWriter::finish(ByteSpan last) {
  const size_t batch = batch_in_memory();
  if (!pending_.empty()) GLYD_CHECK(write(last));
  for (; pending_.empty() && !last.empty(); last = last.subspan(std::min(batch, last.size())))
    GLYD_CHECK(encode_units(last.first(std::min(batch, last.size()))));
  if (!pending_.empty()) GLYD_CHECK(encode_units(pending_));
  pending_.clear();
  if (options_.content_bytes && *options_.content_bytes != content_bytes_) {
    return invalid_argument("{} bytes were announced, {} were given", *options_.content_bytes, content_bytes_);
  }
  FrameFooter footer{.whole_check = whole_.value()};
  if (entries_.size() > 1) {
    const std::vector<uint8_t> index = write_index(frame_bytes_, content_bytes_, entries_);
    GLYD_CHECK(emit(index));
    footer.index_bytes = static_cast<uint32_t>(index.size());
  }
  uint8_t end[kFrameFooterBytes];
  write_footer(footer, end);
  return emit(end);
}

}  // namespace glyd::codec
