// model_config.hpp - config.json of a model: read as Python's json module reads it, and written again with glyd's
// quantization_config. Spec: docs/spec/checkpoint.md 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "format/json_text.hpp"
#include "format/pack_header.hpp"

namespace glyd {

inline constexpr uint64_t kMostConfigBytes = uint64_t{64} << 20;

// Members keep their order. NaN, Infinity and -Infinity, which Python writes and JSON does not have, are kept as marked
// strings until config_text() writes them again.
Result<OrderedJson> parse_config(std::string_view text, std::string_view where);
std::string config_text(const OrderedJson& config);

// "" where there is none.
std::string model_type_of(const OrderedJson& config);

// What the edited config.json says to loaders.
OrderedJson quantization_config(Layout layout, std::string_view glyd_version);

// The edited config.json of a packed checkpoint. GLYD_ERROR_UNSUPPORTED if the model is quantized already.
Result<std::string> edited_config(std::string_view text, std::string_view where, Layout layout,
                                  std::string_view glyd_version);

// What fit needs of a model; the text model's part where config.json nests it.
struct CacheShape {
  uint64_t layers = 0;
  uint64_t values_a_token = 0;  // of one layer: keys and values, or MLA's latent and rotary part
};
std::optional<CacheShape> cache_shape(const OrderedJson& config);

// How many tokens the model's positions are made for (max_position_embeddings), where config.json says it.
std::optional<uint64_t> max_context(const OrderedJson& config);

}  // namespace glyd
