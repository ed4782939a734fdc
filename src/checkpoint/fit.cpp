// fit.cpp - does a model fit a GPU: weights, KV cache and working memory, in bf16 and in each layout.
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/gpu_memory.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/packed_directory.hpp"
#include "checkpoint/shard_writer.hpp"
#include "checkpoint/source.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kRuntimeBytes = uint64_t{3} << 29;  // 1.5 GiB: CUDA context, workspaces, activations
constexpr uint64_t kCacheValueBytes = 2;               // bf16
// Packed bytes over bf16 bytes, measured over the matrices of trained models (docs/adr/0002-layouts.md).
constexpr double kFastRatio = 0.705, kSmallRatio = 0.670;

struct Weights {
  std::string name;
  fs::path config_path;
  uint64_t all_bytes = 0;       // as the source stores them
  uint64_t packable_bytes = 0;  // the part that is packed
  std::optional<Layout> measured_layout;
  uint64_t measured_bytes = 0;
};

// What the model's config.json says of the KV cache.
struct Cache {
  uint64_t bytes = 0;
  std::optional<uint64_t> max_context;  // how far the model's positions go
};

Result<Weights> packed_weights(const fs::path& root) {
  GLYD_TRY(const PackedDirectory packed, PackedDirectory::open(root.string()));
  Weights weights;
  weights.name = packed.manifest().name;
  weights.config_path = packed.root() / kConfigName;
  weights.measured_layout = packed.manifest().layout;
  for (const auto& [name, tensor] : packed.manifest().tensors) {
    const uint64_t bytes = tensor_bytes(*tensor.dtype, tensor.shape).value();
    weights.all_bytes += bytes;
    weights.packable_bytes += tensor.packed ? bytes : 0;
    weights.measured_bytes += tensor.packed ? tensor.packed->bytes : bytes;
  }
  return weights;
}

Result<Weights> source_weights(const std::string& text, const char* revision) {
  GLYD_TRY(const Source source, open_source(text, revision));
  Weights weights;
  weights.name = source.name;
  weights.config_path = source.is_file ? source.root.parent_path() / kConfigName : source.root / kConfigName;
  for (const auto& header : source.headers) {
    for (const auto& tensor : header.tensors) {
      weights.all_bytes += tensor.bytes();
      weights.packable_bytes += is_packable(tensor) ? tensor.bytes() : 0;
    }
  }
  return weights;
}

Result<Cache> cache_of(const Weights& weights, uint64_t context, uint64_t batch) {
  auto text = read_text_file(weights.config_path, kMostConfigBytes);
  if (!text && text.error().status == GLYD_ERROR_NOT_FOUND) {
    return unsupported("{}: missing; the size of the KV cache is worked out from it", weights.config_path.string());
  }
  if (!text) return std::move(text).error();
  GLYD_TRY(const OrderedJson config, parse_config(text.value(), weights.config_path.string()));
  const auto shape = cache_shape(config);
  if (!shape)
    return unsupported("{}: names no layers and heads that the size of the KV cache could be worked out from",
                       weights.config_path.string());
  uint64_t bytes = kCacheValueBytes;
  for (const uint64_t factor : {shape->layers, shape->values_a_token, context, batch}) {
    if (!checked_mul(bytes, factor, bytes))
      return invalid_argument("context {} and batch {} make a KV cache of more than 2^64 bytes", context, batch);
  }
  return Cache{bytes, max_context(config)};
}

uint64_t estimate(const Weights& weights, double ratio) {
  return weights.all_bytes - weights.packable_bytes +
         static_cast<uint64_t>(ratio * static_cast<double>(weights.packable_bytes));
}

}  // namespace

Result<OrderedJson> fit_checkpoint(const std::string& source, const FitOptions& options) {
  GLYD_TRY(const uint64_t gpu_bytes, gpu_memory_bytes(options.gpu));
  GLYD_TRY(const Source place, locate_source(source, options.revision));
  std::error_code error;
  const bool is_packed = !place.is_file && fs::exists(place.root / kManifestName, error);
  GLYD_TRY(const Weights weights, is_packed ? packed_weights(place.root) : source_weights(source, options.revision));
  GLYD_TRY(const Cache cache, cache_of(weights, options.context, options.batch));
  OrderedJson rows = OrderedJson::array();
  const auto add = [&](const char* layout, uint64_t bytes, bool measured) -> Result<void> {
    uint64_t total = kRuntimeBytes;
    if (!checked_add(total, bytes, total) || !checked_add(total, cache.bytes, total))
      return invalid_argument("context and batch are too large");
    rows.push_back({{"layout", layout},
                    {"weights_bytes", bytes},
                    {"total_bytes", total},
                    {"fits", total <= gpu_bytes},
                    {"measured", measured}});
    return Ok{};
  };
  GLYD_CHECK(add("bf16", weights.all_bytes, true));
  for (const auto& [layout, ratio] : {std::pair{Layout::kFast, kFastRatio}, std::pair{Layout::kSmall, kSmallRatio}}) {
    const bool measured = weights.measured_layout == layout;
    GLYD_CHECK(add(layout_text(layout), measured ? weights.measured_bytes : estimate(weights, ratio), measured));
  }
  return OrderedJson{{"model", weights.name},
                     {"gpu_bytes", gpu_bytes},
                     {"context", options.context},
                     {"max_context", cache.max_context ? OrderedJson(*cache.max_context) : OrderedJson(nullptr)},
                     {"batch", options.batch},
                     {"kv_cache_bytes", cache.bytes},
                     {"runtime_bytes", kRuntimeBytes},
                     {"rows", std::move(rows)}};
}

}  // namespace glyd
