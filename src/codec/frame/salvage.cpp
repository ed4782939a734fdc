#include "codec/frame/salvage.hpp"

#include <algorithm>
#include <cstring>

#include "codec/frame/frame.hpp"
#include "codec/unit.hpp"

namespace glyd::codec {
namespace {

// The next place at or after `at` whose first byte may start a chunk, a frame or a footer.
size_t next_mark(ByteSpan bytes, size_t at) {
  for (; at + 4 <= bytes.size(); ++at) {
    const uint32_t word = load_le<uint32_t>(bytes.data() + at);
    if ((word & 0xffffff) == kChunkMark || word == kFrameMagic || word == kEndMark) return at;
  }
  return bytes.size();
}

class Salvage {
 public:
  Salvage(ByteSpan bytes, const std::function<Result<void>(uint64_t, ByteSpan)>& sink) : bytes_(bytes), sink_(sink) {}

  Result<SalvageReport> run() {
    for (size_t at = next_mark(bytes_, 0); at < bytes_.size();) {
      GLYD_TRY(const size_t taken, take(at));
      at = next_mark(bytes_, at + std::max<size_t>(taken, 1));
    }
    end_frame();
    report_.content_end = base_;
    report_.complete = footers_ == frames_ && frames_ != 0 && report_.lost.empty();
    return report_;
  }

 private:
  // Bytes of the whole frame header, unit or footer at `at`, 0 if it is none.
  Result<size_t> take(size_t at) {
    const ByteSpan rest = bytes_.subspan(at);
    if (auto header = parse_frame_header(rest.first(std::min(rest.size(), kFrameHeaderBytes)))) {
      if (frames_ != 0 || position_ != 0) end_frame();
      ++frames_;
      declared_ = header.value().content_bytes;
      return kFrameHeaderBytes;
    }
    if (is_footer(rest) && rest.size() >= kFrameFooterBytes) {
      ++footers_;
      return kFrameFooterBytes;
    }
    const auto header = parse_chunk_header(rest.first(std::min(rest.size(), kChunkHeaderBytes)), kMaxUnitLog);
    if (!header || header.value().stored_bytes > rest.size() - kChunkHeaderBytes) return size_t{0};
    const ChunkHeader& chunk = header.value();
    const ByteSpan payload = rest.subspan(kChunkHeaderBytes, chunk.stored_bytes);
    if (check32(payload) != chunk.payload_check) return size_t{0};
    const size_t taken = kChunkHeaderBytes + chunk.stored_bytes;
    if (!chunk.is_unit()) return taken;
    if (chunk.position < position_)
      return taken;  // a unit of a frame whose header is lost, or a copy: its place is not known
    content_.resize(chunk.raw_bytes);
    if (!read_unit(chunk, payload, bytes_.data() + bytes_.size(), decoder_, content_)) return taken;
    lose(chunk.position);
    GLYD_CHECK(sink_(base_ + chunk.position, content_));
    position_ = chunk.position + chunk.raw_bytes;
    report_.recovered_bytes += chunk.raw_bytes;
    return taken;
  }

  void lose(uint64_t until) {
    if (until > position_) report_.lost.push_back({base_ + position_, base_ + until});
  }

  void end_frame() {
    if (declared_ != kUnknownSize) {
      lose(declared_);
      position_ = std::max(position_, declared_);
    }
    base_ += position_;
    position_ = 0;
    declared_ = kUnknownSize;
  }

  ByteSpan bytes_;
  const std::function<Result<void>(uint64_t, ByteSpan)>& sink_;
  SalvageReport report_;
  UnitDecoder decoder_;
  std::vector<uint8_t> content_;
  uint64_t base_ = 0, position_ = 0, declared_ = kUnknownSize;
  size_t frames_ = 0, footers_ = 0;
};

}  // namespace

Result<SalvageReport> salvage(ByteSpan damaged,
                              const std::function<Result<void>(uint64_t position, ByteSpan content)>& sink) {
  return Salvage(damaged, sink).run();
}

}  // namespace glyd::codec
