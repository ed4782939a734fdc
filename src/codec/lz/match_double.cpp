// match_double.cpp - level max: the tables of kernels/search_body.hpp.
#include "base/aligned_buffer.hpp"
#include "codec/kernels/kernels.hpp"
#include "codec/lz/match_finder.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kLeastBlock = 64, kLeastMatch = 4;

class DoubleFinder final : public MatchFinder {
 public:
  void start(ByteSpan unit) override;
  std::span<const Sequence> find(size_t begin, size_t end) override;

 private:
  ByteSpan unit_;
  AlignedBuffer tables_;
  Sequences found_;  // room for all that a block can have
  MaxSearch::Size size_ = MaxSearch::kSmall;
};

void DoubleFinder::start(ByteSpan unit) {
  unit_ = unit;
  size_ = unit.size() <= 64 << 10 ? MaxSearch::kSmall : unit.size() <= 8 << 20 ? MaxSearch::kMiddle : MaxSearch::kLarge;
  const size_t bytes = MaxSearch::table_bytes(size_);
  // Four MiB are what the buffer gives huge pages for: a look-up then never waits for an address.
  const size_t room = size_ == MaxSearch::kSmall ? bytes : size_t{4} << 20;
  if (tables_.size() < room) tables_ = AlignedBuffer(room);
  std::memset(tables_.data(), 0, bytes);
}

std::span<const Sequence> DoubleFinder::find(size_t begin, size_t end) {
  if (end - begin < kLeastBlock) return {};
  if (found_.size() < (end - begin) / kLeastMatch + 1) found_.resize((end - begin) / kLeastMatch + 1);
  const MaxSearch search{.unit = unit_.data(),
                         .begin = static_cast<uint32_t>(begin),
                         .end = static_cast<uint32_t>(end),
                         .tables = reinterpret_cast<uint32_t*>(tables_.data()),
                         .size = size_,
                         .out = found_.data()};
  return {found_.data(), kernels().search_max(search)};
}

}  // namespace

std::unique_ptr<MatchFinder> make_double_finder() { return std::make_unique<DoubleFinder>(); }

}  // namespace glyd::codec
