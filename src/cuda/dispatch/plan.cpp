#include "dispatch/plan.hpp"

#include <algorithm>

namespace glyd::cuda {
namespace {

// The numbers of LinearTraits, for plans.
struct TileSizes {
  uint32_t tile, x_chunk_bytes, piece_chunks, sum_bytes, zero_line;
  explicit TileSizes(uint32_t tokens)
      : tile(token_tile(tokens)),
        x_chunk_bytes(tile * 2 * kChunkCols),
        piece_chunks(x_piece_chunks(tile)),
        sum_bytes(tile == 1 ? 512 : tile / 8 * 512),
        zero_line(tile == 1 ? 16 : 0) {}
};

uint32_t records_of_split(const LinearPlan& plan, uint32_t split) {
  const uint32_t begin = split * plan.split_chunks, end = std::min(plan.chunks, begin + plan.split_chunks);
  return (end + kRecordChunks - 1) / kRecordChunks - begin / kRecordChunks;
}

// The most pieces of x that one block's units touch.
uint32_t most_pieces(const LinearPlan& plan, uint32_t piece_chunks) {
  uint32_t most = 1;
  for (uint32_t b = 0; b < plan.blocks; ++b) {
    const uint32_t first = static_cast<uint32_t>(static_cast<uint64_t>(plan.units) * b / plan.blocks);
    const uint32_t end = static_cast<uint32_t>(static_cast<uint64_t>(plan.units) * (b + 1) / plan.blocks);
    if (first == end) continue;
    const uint32_t begin_chunk = first / plan.strips * plan.split_chunks / kRecordChunks * kRecordChunks;
    const uint32_t end_chunk = std::min(plan.chunks, ((end - 1) / plan.strips + 1) * plan.split_chunks);
    most = std::max(most, (end_chunk - begin_chunk + piece_chunks - 1) / piece_chunks);
  }
  return most;
}

// Sets the places in shared memory for the plan's teams, depth and pieces.
void place_shared(LinearPlan& plan, const TileSizes& sizes) {
  const uint32_t workers = plan.workers();
  uint32_t at = sizes.zero_line + plan.x_pieces * sizes.piece_chunks * sizes.x_chunk_bytes;
  at = round_up(at, 128u);
  plan.tokens_at = at;
  if (plan.team_warps > 1) at += workers * 2 * sizes.sum_bytes;
  plan.scratch_at = at;
  at += workers * 2048;
  plan.ring_at = at;
  at += workers * plan.depth * plan.ring_stride;
  plan.barriers_at = at;
  plan.shared_bytes = at + workers * (plan.depth * 8 + 16) + plan.x_pieces * 16;
}

// One round of units where they fit, about 12 warps a block, 2 or 3 records in flight a warp, all of x where it fits.
// Measured: docs/adr/0010.
bool choose_teams(LinearPlan& plan, const TileSizes& sizes, const DeviceLimits& limits) {
  const uint32_t a_block = (plan.units + plan.blocks - 1) / plan.blocks;
  const uint32_t pieces = most_pieces(plan, sizes.piece_chunks);
  for (uint32_t rounds = (a_block + most_workers(sizes.tile) - 1) / most_workers(sizes.tile);; ++rounds) {
    plan.teams = (a_block + rounds - 1) / rounds;
    plan.single_round = plan.teams >= a_block;
    const uint32_t warps[] = {4, 4, 4, 4, 3, 2, 2, 2, 1};  // by teams
    const uint32_t most_warps = std::min(warps[std::min(plan.teams, 8u)], most_workers(sizes.tile) / plan.teams);
    for (plan.team_warps = most_warps; plan.team_warps >= 1; --plan.team_warps) {
      // A warp without a record in every unit could run ahead of the two places for sums.
      if (!plan.single_round && plan.team_warps > 1 && records_of_split(plan, plan.splits - 1) <= plan.team_warps)
        continue;
      for (uint32_t ring : {0u, 4u, 3u, 2u}) {
        plan.x_pieces = ring == 0 ? pieces : std::min(ring, pieces);
        for (plan.depth = plan.team_warps == 1 && a_block > 8 ? 3 : 2; plan.depth >= 2; --plan.depth) {
          place_shared(plan, sizes);
          if (plan.shared_bytes <= limits.shared_bytes) return true;
        }
      }
    }
    if (plan.teams == 1) return false;
  }
}

}  // namespace

uint32_t token_tile(uint32_t tokens) {
  return tokens <= 1 ? 1 : tokens <= 8 ? 8 : tokens <= 16 ? 16 : tokens <= 32 ? 32 : 64;
}

uint32_t split_chunks(uint64_t cols, uint32_t splits) {
  return static_cast<uint32_t>(ceil_div(ceil_div(cols, uint64_t{splits}), uint64_t{kChunkCols}));
}

std::optional<LinearPlan> plan_linear(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                      const DeviceLimits& limits) {
  const Grid& grid = header.grid;
  if (header.layout != Layout::kFast || !header.fusible) return std::nullopt;
  if (tokens < 1 || tokens > kMostFusedTokens || splits < 1 || grid.rows == 0 || grid.cols == 0 || grid.cols % 8 != 0) {
    return std::nullopt;
  }
  // 32-bit places inside a matrix's strip; what is larger has no fused route.
  if (fast::strip_bytes(grid.steps()) > 0x7fffffffu || grid.rows > 0x7ffffff0u) return std::nullopt;
  LinearPlan plan;
  plan.rows = static_cast<uint32_t>(grid.rows);
  plan.cols = static_cast<uint32_t>(grid.cols);
  plan.tokens = tokens;
  plan.strips = static_cast<uint32_t>(grid.strips_a_matrix());
  plan.chunks = static_cast<uint32_t>(ceil_div(grid.cols, uint64_t{kChunkCols}));
  plan.records = static_cast<uint32_t>(fast::records_a_strip(grid.steps()));
  plan.tail_steps = fast::steps_of_record(grid.steps(), plan.records - 1);
  plan.split_chunks = split_chunks(grid.cols, splits);
  plan.splits = static_cast<uint32_t>(ceil_div(plan.chunks, plan.split_chunks));  // empty splits add zeros
  plan.units = plan.strips * plan.splits;
  plan.blocks = limits.multiprocessors;
  if (static_cast<uint64_t>(plan.strips) * plan.splits * plan.blocks * plan.blocks >= uint64_t{1} << 32)
    return std::nullopt;
  plan.unit_magic = static_cast<uint32_t>(((uint64_t{1} << 32) + plan.blocks - 1) / plan.blocks);
  plan.x_by_chunk = grid.cols % kChunkCols != 0;
  plan.strip_bytes = static_cast<uint32_t>(fast::strip_bytes(grid.steps()));
  plan.strip_slot_bytes = static_cast<uint32_t>(fast::strip_slot_bytes(header.slot_bytes, grid.steps()));
  plan.slot_stride = header.slot_bytes;
  plan.slot_copy = std::max(16u, header.slot_bytes);
  plan.tail_slot_copy = std::max(16u, fast::slot_bytes_of(header.slot_bytes, plan.tail_steps));
  plan.slot_entries = header.slot_bytes == 0 ? 0 : (header.slot_bytes - fast::kSlotHeaderBytes) * 8 / 12;
  plan.ring_stride = round_up(fast::kRecordBytes + plan.slot_copy, 128u);
  if (!choose_teams(plan, TileSizes(tokens), limits)) return std::nullopt;
  return plan;
}

uint64_t partial_bytes(const LinearPlan& plan) {
  const uint64_t tile = token_tile(plan.tokens);
  return static_cast<uint64_t>(plan.strips) * (plan.splits - 1) * (tile == 1 ? 1 : tile / 8) * 512;
}

}  // namespace glyd::cuda
