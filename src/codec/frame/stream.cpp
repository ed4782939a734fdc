#include "codec/frame/stream.hpp"

#include <algorithm>

#include "base/parallel.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kSlack = 16;             // kernels load past a payload's end
constexpr uint64_t kSlotBytes = 4 << 20;  // besides a unit's content and payload

}  // namespace

struct StreamDecoder::Slot {
  ChunkHeader header;
  UnitDecoder decoder;
  std::vector<uint8_t> payload, content;
  Result<void> result;

  Result<void> decode() {
    if (content.size() < header.raw_bytes) content.resize(header.raw_bytes);
    return read_unit(header, {payload.data(), header.stored_bytes}, payload.data() + payload.size(), decoder,
                     {content.data(), header.raw_bytes});
  }
};

StreamDecoder::StreamDecoder(Fetch fetch, ReaderOptions options)
    : fetch_(std::move(fetch)), options_(std::move(options)) {
  options_.threads = resolve_threads(options_.threads);
}
StreamDecoder::~StreamDecoder() = default;

Result<size_t> StreamDecoder::fetch_up_to(MutableByteSpan bytes) {
  size_t got = 0;
  while (got < bytes.size()) {
    GLYD_TRY(const size_t count, fetch_(bytes.subspan(got)));
    if (count > bytes.size() - got)
      return invalid_argument("the read function gave {} bytes where {} were asked for", count, bytes.size() - got);
    if (count == 0) break;
    got += count;
  }
  offset_ += got;
  return got;
}

Result<void> StreamDecoder::fetch_exactly(MutableByteSpan bytes) {
  GLYD_TRY(const size_t got, fetch_up_to(bytes));
  if (got != bytes.size())
    return corrupt("truncated: the input ends at {} within the frame that starts at {}", offset_, frame_begin_);
  return {};
}

// False at the end of the input.
Result<bool> StreamDecoder::begin_frame() {
  uint8_t bytes[kFrameHeaderBytes];
  frame_begin_ = offset_;
  GLYD_TRY(const size_t got, fetch_up_to(bytes));
  if (got == 0 && any_frame_) return false;
  if (got == 0) return corrupt("empty: not even a frame's header");
  auto header = parse_frame_header({bytes, got});
  if (!header && any_frame_) return corrupt("what follows the frame that ends at {} is no frame", frame_begin_);
  GLYD_TRY(header_, std::move(header));
  const uint64_t unit = std::min(uint64_t{1} << header_.unit_log, header_.content_bytes);  // not known: the largest
  const auto needs = [&](int threads) { return static_cast<uint64_t>(threads) * (2 * unit + kSlotBytes); };
  while (options_.memory_limit != 0 && options_.threads > 1 && needs(options_.threads) > options_.memory_limit)
    --options_.threads;
  if (options_.memory_limit != 0 && needs(1) > options_.memory_limit) {
    return Error{GLYD_ERROR_OUT_OF_MEMORY,
                 fmt::format("decoding may need {} bytes of memory, the limit is {}: raise it", needs(1),
                             options_.memory_limit)};
  }
  entries_.clear();
  whole_ = {};
  position_ = 0;
  index_bytes_ = 0;
  in_frame_ = any_frame_ = true;
  return true;
}

Result<void> StreamDecoder::end_frame(ByteSpan bytes) {
  GLYD_TRY(const FrameFooter footer, parse_footer(bytes));
  if (footer.index_bytes != index_bytes_ || (index_bytes_ != 0) != (entries_.size() > 1))
    return corrupt("frame at {}: its index is missing or of wrong size", frame_begin_);
  if (footer.whole_check != whole_.value())
    return corrupt("frame at {}: its units are whole, but their check together differs", frame_begin_);
  if (header_.content_bytes != kUnknownSize && header_.content_bytes != position_)
    return corrupt("frame at {}: {} bytes are declared, its units have {}", frame_begin_, header_.content_bytes,
                   position_);
  in_frame_ = false;
  return {};
}

// The next chunk; `is_unit` if `slot` now holds one to decode.
Result<void> StreamDecoder::take_chunk(Slot& slot, bool& is_unit) {
  const uint64_t at = offset_;
  uint8_t bytes[kChunkHeaderBytes];
  is_unit = false;
  GLYD_CHECK(fetch_exactly({bytes, kFrameFooterBytes}));
  if (is_footer(bytes)) return end_frame({bytes, kFrameFooterBytes});
  GLYD_CHECK(fetch_exactly({bytes + kFrameFooterBytes, kChunkHeaderBytes - kFrameFooterBytes}));
  auto parsed = parse_chunk_header(bytes, header_.unit_log);
  if (!parsed) return std::move(parsed).at(fmt::format("offset {}", at)).error();
  slot.header = parsed.value();
  const ChunkHeader& c = slot.header;
  if (c.position != position_ || index_bytes_ != 0 || (c.kind == ChunkKind::kMetadata && !entries_.empty()))
    return corrupt("offset {}: a chunk out of order", at);
  const size_t index_payload = 8 + 8 * entries_.size();
  if (c.kind == ChunkKind::kIndex && c.stored_bytes != index_payload)
    return corrupt("offset {}: an index of {} bytes for {} chunks", at, c.stored_bytes, entries_.size());
  // Grown as bytes arrive: a header's word alone allocates little.
  for (size_t got = 0; got < c.stored_bytes;) {
    const size_t step = std::min<size_t>(c.stored_bytes - got, std::max<size_t>(got, 1 << 20));
    if (slot.payload.size() < got + step + kSlack) slot.payload.resize(got + step + kSlack);
    GLYD_CHECK(fetch_exactly({slot.payload.data() + got, step}));
    got += step;
  }
  const ByteSpan payload{slot.payload.data(), c.stored_bytes};
  if (c.kind == ChunkKind::kIndex) {
    GLYD_TRY(const Index index, parse_index(c, payload));
    if (index.entries != entries_) return corrupt("offset {}: the index differs from the chunks before it", at);
    index_bytes_ = static_cast<uint32_t>(kChunkHeaderBytes + c.stored_bytes);
    return {};
  }
  entries_.push_back({c.raw_bytes, c.stored_bytes});
  if (c.kind == ChunkKind::kMetadata) {
    if (check32(payload) != c.payload_check) return corrupt("metadata: its check differs");
    return {};
  }
  whole_.add(c.raw_bytes, c.content_check);
  position_ += c.raw_bytes;
  is_unit = true;
  return {};
}

// Gives how many of the first `units` are whole; the error of the next one is kept.
size_t StreamDecoder::decode_batch(size_t units) {
  parallel_for(units, 1, options_.threads, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) slots_[i]->result = slots_[i]->decode();
  });
  for (size_t i = 0; i < units; ++i) {
    const ChunkHeader& h = slots_[i]->header;
    if (slots_[i]->result) continue;
    failure_ =
        std::move(slots_[i]->result).at(fmt::format("content {} to {}", h.position, h.position + h.raw_bytes)).error();
    return i;
  }
  return units;
}

// A batch of units, fewer at the end of a frame. What lies before an error is served first, whatever the number of
// threads.
Result<void> StreamDecoder::fill() {
  ready_ = current_ = served_ = 0;
  if (failure_) return *failure_;
  if (!in_frame_) {
    GLYD_TRY(const bool more, begin_frame());
    ended_ = !more;
    if (ended_) return {};
  }
  size_t units = 0;
  while (in_frame_ && !failure_ && units < static_cast<size_t>(options_.threads)) {
    if (slots_.size() == units) slots_.push_back(std::make_unique<Slot>());
    bool is_unit = false;
    if (auto taken = take_chunk(*slots_[units], is_unit); !taken) failure_ = std::move(taken).error();
    units += is_unit;
  }
  ready_ = decode_batch(units);
  if (ready_ == 0 && failure_) return *failure_;
  return {};
}

Result<size_t> StreamDecoder::read(MutableByteSpan out) {
  size_t given = 0;
  while (given < out.size() && !ended_) {
    if (current_ == ready_) {
      if (given != 0 && ready_ != 0) break;  // what is there already goes first
      GLYD_CHECK(fill());
      continue;
    }
    const Slot& slot = *slots_[current_];
    const size_t count = std::min(out.size() - given, slot.header.raw_bytes - served_);
    std::copy_n(slot.content.data() + served_, count, out.data() + given);
    given += count;
    served_ += count;
    total_ += count;
    if (served_ == slot.header.raw_bytes) {
      ++current_;
      served_ = 0;
      if (options_.progress && !options_.progress(total_)) return cancelled("stopped by the caller");
    }
  }
  return given;
}

}  // namespace glyd::codec
