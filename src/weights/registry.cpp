#include "weights/registry.hpp"

#include "weights/fast/fast.hpp"
#include "weights/raw/raw.hpp"
#include "weights/small/small.hpp"

namespace glyd {
namespace {

// In the order of their numbers.
const std::array kLayouts = {
    LayoutOps{Layout::kRaw, "raw", nullptr, 0, {Layout::kRaw, Layout::kRaw}, raw::pack, nullptr},
    LayoutOps{
        Layout::kFast, "fast", "mma12", fast::kRecordSteps, {Layout::kSmall, Layout::kRaw}, fast::pack, fast::open},
    LayoutOps{
        Layout::kSmall, "small", "mma", small::kRecordSteps, {Layout::kFast, Layout::kRaw}, small::pack, small::open},
};

}  // namespace

const LayoutOps& layout_ops(Layout layout) { return kLayouts[static_cast<size_t>(layout)]; }
std::span<const LayoutOps> all_layouts() { return kLayouts; }

}  // namespace glyd
