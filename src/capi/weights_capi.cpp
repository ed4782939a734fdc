// weights_capi.cpp - glyd/weights.h but glyd_linear: checks arguments, calls weights/, translates.
#include <cstring>
#include <string_view>

#include "base/cpu.hpp"
#include "base/guard.hpp"
#include "glyd/weights.h"
#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd::capi {
namespace {

Result<Grid> read_shape(const glyd_shape* shape) {
  GLYD_CHECK(not_null(shape, "shape"));
  if (shape->transposed > 1 || shape->reserved != 0) {
    return invalid_argument("shape: transposed is {} (0 or 1), reserved is {} (0)", shape->transposed, shape->reserved);
  }
  const Grid grid{shape->stack, shape->rows, shape->cols};
  GLYD_CHECK(check_shape(grid));
  return grid;
}

Result<Layout> read_layout(glyd_layout layout) {
  for (const LayoutOps& ops : all_layouts()) {
    if (static_cast<int>(ops.layout) == static_cast<int>(layout)) return ops.layout;
  }
  return invalid_argument("unknown layout {}", static_cast<int>(layout));
}

Result<ByteSpan> read_pack(const void* pack, uint64_t bytes) {
  GLYD_CHECK(not_null(pack, "pack"));
  return ByteSpan(static_cast<const uint8_t*>(pack), bytes);
}

}  // namespace
}  // namespace glyd::capi

using namespace glyd;
using namespace glyd::capi;

extern "C" {

glyd_status glyd_layout_from_name(const char* name, glyd_layout* layout) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(name, "name"));
    GLYD_CHECK(not_null(layout, "layout"));
    const std::string_view wanted = name;
    if (wanted == "auto") {
      *layout = GLYD_LAYOUT_AUTO;
      return Ok{};
    }
    for (const LayoutOps& ops : all_layouts()) {
      if (wanted != ops.name && (ops.alias == nullptr || wanted != ops.alias)) continue;
      *layout = static_cast<glyd_layout>(ops.layout);
      return Ok{};
    }
    return invalid_argument("unknown layout \"{}\": choose auto, fast, small or raw (mma12 is fast, mma is small)",
                            wanted);
  });
}

const char* glyd_layout_name(glyd_layout layout) noexcept {
  if (layout == GLYD_LAYOUT_AUTO) return "auto";
  for (const LayoutOps& ops : all_layouts()) {
    if (static_cast<int>(ops.layout) == static_cast<int>(layout)) return ops.name;
  }
  return "unknown";
}

glyd_status glyd_pack_bound(const glyd_shape* shape, uint64_t* bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(bytes, "bytes"));
    GLYD_TRY(const Grid grid, read_shape(shape));
    *bytes = pack_bound(grid);
    return Ok{};
  });
}

glyd_status glyd_pack(const uint16_t* bf16, const glyd_shape* shape, glyd_layout layout, int threads, void* pack,
                      uint64_t pack_capacity, uint64_t* pack_bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const Grid grid, read_shape(shape));
    const bool chosen = layout == GLYD_LAYOUT_AUTO;
    GLYD_TRY(const Layout wanted, read_layout(chosen ? GLYD_LAYOUT_FAST : layout));
    GLYD_CHECK(not_null(pack, "pack"));
    GLYD_CHECK(not_null(pack_bytes, "pack_bytes"));
    const uint64_t values = grid.stack * grid.rows * grid.cols;
    if (values > 0) GLYD_CHECK(not_null(bf16, "bf16"));
    const std::span<const uint16_t> source(bf16, values);
    const bool transposed = shape->transposed != 0;
    GLYD_TRY(const AlignedBuffer packed, chosen ? pack_tensor_auto(source, grid, transposed, threads)
                                                : pack_tensor(source, grid, transposed, wanted, threads));
    if (packed.size() > pack_capacity) {
      return Error{GLYD_ERROR_BUFFER_TOO_SMALL,
                   fmt::format("pack: {} bytes do not fit {}; glyd_pack_bound says how many always do", packed.size(),
                               pack_capacity)};
    }
    std::memcpy(pack, packed.data(), packed.size());
    *pack_bytes = packed.size();
    return Ok{};
  });
}

glyd_status glyd_pack_read_info(const void* pack, uint64_t pack_bytes, glyd_pack_info* info) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan bytes, read_pack(pack, pack_bytes));
    const ByteSpan head = bytes.first(std::min<uint64_t>(pack_bytes, kPackHeaderBytes));
    GLYD_TRY(const PackHeader header, read_pack_header(head, pack_bytes));
    glyd_pack_info result{};
    result.shape = {header.grid.stack, header.grid.rows, header.grid.cols, header.transposed ? 1u : 0u, 0};
    result.layout = static_cast<glyd_layout>(header.layout);
    result.fusible = header.fusible ? 1 : 0;
    result.pack_bytes = header.pack_bytes;
    result.bf16_bytes = header.bf16_bytes();
    result.base = header.base;
    result.slot_bytes = header.slot_bytes;
    result.min_bits = header.min_bits;
    result.symbols = header.symbols;
    return write_struct(result, info, "info");
  });
}

glyd_status glyd_pack_validate(const void* pack, uint64_t pack_bytes, int threads) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan bytes, read_pack(pack, pack_bytes));
    return validate_pack(bytes, threads);
  });
}

glyd_status glyd_decode(const void* pack, uint64_t pack_bytes, int threads, uint16_t* bf16,
                        uint64_t bf16_capacity_values) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan bytes, read_pack(pack, pack_bytes));
    GLYD_TRY(const PackHeader header, read_pack_header(bytes, pack_bytes));
    if (bf16_capacity_values < header.values()) {
      return Error{GLYD_ERROR_BUFFER_TOO_SMALL,
                   fmt::format("decode: room for {} values, the tensor has {}", bf16_capacity_values, header.values())};
    }
    if (header.values() > 0) GLYD_CHECK(not_null(bf16, "bf16"));
    return decode_tensor(bytes, threads, {bf16, header.values()});
  });
}

glyd_status glyd_decode_block(const void* pack, uint64_t pack_bytes, uint64_t matrix, uint64_t row_begin,
                              uint64_t row_end, uint64_t col_begin, uint64_t col_end, int threads, uint16_t* out,
                              uint64_t out_stride) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan bytes, read_pack(pack, pack_bytes));
    if (row_begin < row_end && col_begin < col_end) GLYD_CHECK(not_null(out, "out"));
    return decode_block(bytes, {matrix, row_begin, row_end, col_begin, col_end}, threads, out, out_stride);
  });
}

glyd_status glyd_decode_rows(const void* pack, uint64_t pack_bytes, const int64_t* indices, uint64_t count, int threads,
                             uint16_t* out) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan bytes, read_pack(pack, pack_bytes));
    if (count > 0) {
      GLYD_CHECK(not_null(indices, "indices"));
      GLYD_CHECK(not_null(out, "out"));
    }
    return decode_rows(bytes, {indices, count}, threads, out);
  });
}

const char* glyd_cpu_isa(void) noexcept { return isa_name(cpu_isa()); }

}  // extern "C"
