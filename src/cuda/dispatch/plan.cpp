#include "dispatch/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace glyd::cuda {
namespace {

constexpr uint32_t kMostTeamWarps = 4;

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
  plan.sums_at = at;
  if (plan.team_warps > 1) at += workers * sizes.sum_bytes;
  plan.scratch_at = at;
  at += workers * 2048;
  plan.ring_at = at;
  at += workers * plan.depth * plan.ring_stride;
  plan.barriers_at = at;
  plan.shared_bytes = at + workers * plan.depth * 8 + plan.x_pieces * 16;
}

uint32_t units_a_block(const LinearPlan& plan) { return (plan.units + plan.blocks - 1) / plan.blocks; }

// Sets teams, warps and depth, and what follows from them; whether it fits.
bool try_teams(LinearPlan& plan, const TileSizes& sizes, const DeviceLimits& limits, const TeamChoice& choice) {
  plan.teams = choice.teams;
  plan.team_warps = choice.team_warps;
  plan.depth = choice.depth;
  plan.x_pieces = choice.x_pieces;
  plan.warp_magic = (256 + plan.team_warps - 1) / plan.team_warps;
  plan.turn_magic = (65536 + plan.team_warps - 1) / plan.team_warps;
  place_shared(plan, sizes);
  return plan.workers() <= most_workers(sizes.tile, plan.splits > 1) && plan.team_warps <= kMostTeamWarps &&
         plan.shared_bytes <= limits.shared_bytes;
}

// The most warps a team, then the most of x, then the most records in flight that fit with this many teams.
bool fill_teams(LinearPlan& plan, const TileSizes& sizes, const DeviceLimits& limits, uint32_t teams, uint32_t pieces) {
  const uint32_t warps[] = {4, 4, 4, 4, 3, 3, 2, 2, 1};  // by teams: 12 to 15 in all where they can be
  for (uint32_t team_warps = warps[std::min(teams, 8u)]; team_warps >= 1; --team_warps) {
    for (uint32_t ring : {pieces, 6u, 4u, 3u, 2u}) {
      for (uint32_t depth = team_warps == 1 && teams > 8 ? 3 : 2; depth >= 2; --depth) {
        if (try_teams(plan, sizes, limits, {teams, team_warps, depth, std::min(ring, pieces)})) return true;
      }
    }
  }
  return false;
}

// As few rounds of units as warps allow. (Two rounds of teams of 3 instead of one round of 8 lone warps: 14% slower at
// 16 tokens.)
bool choose_teams(LinearPlan& plan, const TileSizes& sizes, const DeviceLimits& limits, uint32_t pieces) {
  const uint32_t a_block = units_a_block(plan), most = most_workers(sizes.tile, plan.splits > 1);
  for (uint32_t rounds = (a_block + most - 1) / most; rounds <= a_block; ++rounds) {
    if (fill_teams(plan, sizes, limits, (a_block + rounds - 1) / rounds, pieces)) return true;
  }
  return false;
}

}  // namespace

uint32_t token_tile(uint32_t tokens) {
  return tokens <= 1 ? 1 : tokens <= 8 ? 8 : tokens <= 16 ? 16 : tokens <= 32 ? 32 : 64;
}

uint32_t split_chunks(uint64_t cols, uint32_t splits) {
  return static_cast<uint32_t>(ceil_div(ceil_div(cols, uint64_t{splits}), uint64_t{kChunkCols}));
}

RecordGeometry record_geometry(const PackHeader& header) {
  const Grid& grid = header.grid;
  RecordGeometry g;
  g.rows = static_cast<uint32_t>(grid.rows);
  g.cols = static_cast<uint32_t>(grid.cols);
  g.strips = static_cast<uint32_t>(grid.strips_a_matrix());
  g.chunks = static_cast<uint32_t>(ceil_div(grid.cols, uint64_t{kChunkCols}));
  g.records = static_cast<uint32_t>(fast::records_a_strip(grid.steps()));
  g.tail_steps = fast::steps_of_record(grid.steps(), g.records - 1);
  g.tail_plane_bytes = fast::record_bytes(g.tail_steps);
  g.strip_bytes = static_cast<uint32_t>(fast::strip_bytes(grid.steps()));
  g.strip_slot_bytes = static_cast<uint32_t>(fast::strip_slot_bytes(header.slot_bytes, grid.steps()));
  g.slot_stride = header.slot_bytes;
  g.slot_copy = std::max(16u, header.slot_bytes);
  g.tail_slot_copy = std::max(16u, fast::slot_bytes_of(header.slot_bytes, g.tail_steps));
  g.slot_entries = header.slot_bytes == 0 ? 0 : (header.slot_bytes - fast::kSlotHeaderBytes) * 8 / 12;
  g.ring_stride = round_up(fast::kRecordBytes + g.slot_copy, 128u);
  return g;
}

bool may_fuse(const PackHeader& header, uint64_t tokens) {
  const Grid& grid = header.grid;
  // Places inside a matrix's strip are 32-bit; x comes in pieces of 16 bytes.
  return header.layout == Layout::kFast && header.fusible && tokens >= 1 && tokens <= kMostFusedTokens &&
         grid.rows > 0 && grid.cols > 0 && grid.cols % 8 == 0 && fast::strip_bytes(grid.steps()) <= 0x7fffffffu &&
         grid.rows <= 0x7ffffff0u;
}

bool may_fuse_exactly(const PackHeader& header, uint64_t tokens) {
  // Where rows of y are not aligned to 16 bytes, cuBLAS takes kernels of another order. Sums in shifted form leave
  // fp32's range elsewhere than true ones do: within these shifts no sum that matters does (docs/gpu.md, "Exact").
  constexpr int kMostShift = 24;
  return may_fuse(header, tokens) && header.grid.rows % 8 == 0 &&
         std::abs(static_cast<int>(header.base) - 120) <= kMostShift;
}

std::optional<LinearPlan> plan_linear(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                      const DeviceLimits& limits, const TeamChoice& choice) {
  const Grid& grid = header.grid;
  if (!may_fuse(header, tokens) || tokens > kMostNarrowTokens || splits < 1) return std::nullopt;
  LinearPlan plan;
  static_cast<RecordGeometry&>(plan) = record_geometry(header);
  plan.tokens = tokens;
  plan.split_chunks = split_chunks(grid.cols, splits);
  plan.splits = static_cast<uint32_t>(ceil_div(plan.chunks, plan.split_chunks));  // empty splits add zeros
  plan.units = plan.strips * plan.splits;
  plan.blocks = limits.multiprocessors;
  if (static_cast<uint64_t>(plan.strips) * plan.splits * plan.blocks * plan.blocks >= uint64_t{1} << 32)
    return std::nullopt;
  plan.unit_magic = static_cast<uint32_t>(((uint64_t{1} << 32) + plan.blocks - 1) / plan.blocks);
  plan.x_by_chunk = grid.cols % kChunkCols != 0;
  const TileSizes sizes(tokens);
  const uint32_t pieces = most_pieces(plan, sizes.piece_chunks);
  TeamChoice forced = choice;
  if (forced.x_pieces == 0 || forced.x_pieces > pieces) forced.x_pieces = pieces;
  const bool fits =
      choice.teams == 0 ? choose_teams(plan, sizes, limits, pieces) : try_teams(plan, sizes, limits, forced);
  if (!fits) return std::nullopt;
  plan.counted = plan.teams < units_a_block(plan);
  return plan;
}

double clocks_of(const LinearPlan& plan) {
  const double records = plan.split_chunks / 2.0, units = units_a_block(plan);
  const double rounds = std::ceil(units / plan.teams);
  const bool many = plan.tokens > 32;
  const double chain = rounds * records * (many ? 1900 : 1120), all = units * records * (many ? 226 : 163);
  // Answers of the other splits' sums, up to four tiles of 8 tokens at once.
  const double answers = plan.splits > 1 ? plan.splits * std::ceil(token_tile(plan.tokens) / 32.0) : 0;
  return 6000 + std::max(chain, all) + (plan.splits > 1 ? 3000 + 700 * answers : 0);
}

uint64_t partial_sum_bytes(const LinearPlan& plan) {
  const uint64_t tile = token_tile(plan.tokens);
  return plan.splits == 1 ? 0 : uint64_t{plan.strips} * plan.splits * (tile == 1 ? 1 : tile / 8) * 512;
}

uint64_t partial_bytes(const LinearPlan& plan) {
  return partial_sum_bytes(plan) + (plan.counted ? uint64_t{plan.strips} * 4 : 0);
}

}  // namespace glyd::cuda
