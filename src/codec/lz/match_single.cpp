// match_single.cpp - level default: the table of kernels/search_bytes_body.hpp.
#include "codec/format.hpp"
#include "codec/kernels/kernels.hpp"
#include "codec/lz/match_finder.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kLeastBlock = 64;

class SingleFinder final : public MatchFinder {
 public:
  void start(ByteSpan unit) override {
    unit_ = unit;
    table_.assign(size_t{1} << DefaultSearch::kTableLog, 0);
  }
  std::span<const Sequence> find(size_t begin, size_t end) override;

 private:
  ByteSpan unit_;
  std::vector<uint16_t> table_;
  Sequences found_;  // room for all that a block can have
};

std::span<const Sequence> SingleFinder::find(size_t begin, size_t end) {
  if (end - begin < kLeastBlock) return {};
  const size_t most = (end - begin) / kBytesMinLength + 1;
  if (found_.size() < most) found_.resize(most);
  const DefaultSearch search{.unit = unit_.data(),
                             .begin = static_cast<uint32_t>(begin),
                             .end = static_cast<uint32_t>(end),
                             .table = table_.data(),
                             .out = found_.data()};
  return {found_.data(), kernels().search_default(search)};
}

}  // namespace

std::unique_ptr<MatchFinder> make_single_finder() { return std::make_unique<SingleFinder>(); }

}  // namespace glyd::codec
