// linear_bench - products from packs against cuBLAS's bf16 product, timed in the same run: CUDA graphs, matrices
// rotating through memory, JSON lines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench_main.hpp"
#include "dispatch/product.hpp"
#include "gpu_report.hpp"
#include "gpu_timer.hpp"
#include "random_bf16.hpp"
#include "weights/weights.hpp"

namespace glyd::bench {
namespace {

using cuda::cuda_check;

struct Shape {
  uint64_t rows, cols;
  std::string name() const { return fmt::format("{}x{}", rows, cols); }
};
struct Group {
  const char* name;
  std::vector<Shape> shapes;
};
// The four products of a layer: q, k and v in one, attention's output, gate and up in one, down.
const Group kGroups[] = {
    {"8b_layer", {{6144, 4096}, {4096, 4096}, {24576, 4096}, {4096, 12288}}},
    {"32b_layer", {{10240, 5120}, {5120, 8192}, {51200, 5120}, {5120, 25600}}},
    {"small", {{1024, 4096}, {2048, 2048}}},
};

struct Options {
  std::vector<uint64_t> tokens{1, 8, 16};
  std::vector<std::string> groups{"8b_layer"};
  std::string json;
  std::string commit = "unknown";
  uint64_t rotate_bytes = uint64_t{1200} << 20;
  int calls = 40, replays = 5;
  bool free_order = false, sweep = false, host_time = true;
  std::string kernel = "auto";
  std::vector<uint32_t> teams, wide;
  uint32_t strips = 0;
};

struct HostTimes {
  double call = 0, empty_launch = 0;
};

struct Times {
  double baseline = 0, plain = 0, early = 0;
  uint64_t differing = 0;
  bool exact = false;
  std::string route;
  uint32_t splits = 0;
};

// One shape's matrices and packs on the device, each several times over so that no call finds its weights in L2.
class Matrices {
 public:
  static Result<Matrices> create(cuda::Context& context, const Shape& shape, uint64_t rotate_bytes) {
    Matrices m(context, shape);
    const auto values = random_bf16(shape.rows, shape.cols, 0.02f, 1, false);
    const Grid grid{1, shape.rows, shape.cols};
    GLYD_TRY(const AlignedBuffer packed, pack_tensor(values, grid, false, Layout::kFast, 0));
    m.bits_ = 8.0 * static_cast<double>(packed.size()) / static_cast<double>(values.size());
    GLYD_CHECK(m.replicate(m.dense_, values.data(), values.size() * 2, rotate_bytes));
    GLYD_CHECK(m.replicate(m.packs_, packed.data(), packed.size(), rotate_bytes));
    std::memcpy(m.header_.data(), packed.data(), kPackHeaderBytes);
    m.pack_bytes_ = packed.size();
    GLYD_CHECK(m.open_in(context));
    const auto x = random_bf16(kMostTokens, shape.cols, 1.0f, 7, true);
    GLYD_TRY(m.x_, cuda::DeviceBuffer::allocate(x.size() * 2));
    GLYD_CHECK(cuda_check(cudaMemcpy(m.x_.as<void>(), x.data(), x.size() * 2, cudaMemcpyHostToDevice), "cudaMemcpy"));
    GLYD_TRY(m.y_, cuda::DeviceBuffer::allocate(kMostTokens * shape.rows * 2));
    const uint64_t workspace = cuda::linear_workspace_bytes(*m.opened_[0]);
    GLYD_TRY(m.workspace_, cuda::DeviceBuffer::allocate(workspace));
    m.workspace_bytes_ = workspace;
    GLYD_CHECK(cuda::initialise_workspace(m.workspace_.as<void>(), workspace, nullptr));
    return m;
  }

  double bits() const { return bits_; }

  // Closes the packs, before their context goes.
  void close() { opened_.clear(); }
  // Opens the packs in this context; what they were opened in before may go.
  Result<void> open_in(cuda::Context& context) {
    context_ = &context;
    opened_.clear();
    for (const auto& buffer : packs_) {
      GLYD_TRY(auto opened, cuda::DevicePack::open(context, header_, pack_bytes_, buffer.as<void>()));
      opened_.push_back(std::move(opened));
    }
    return Ok{};
  }

  Result<Times> measure(uint64_t tokens, const Options& options) {
    Times times;
    cuda::DevicePack& pack = *opened_[0];
    // What was not prepared is decoded.
    if (!options.free_order && options.kernel != "decode") GLYD_CHECK(cuda::prepare(pack, std::vector{tokens}, false));
    GLYD_TRY(cuda::Cublas* const cublas, context_->cublas());
    const auto dense = [&](int i, cudaStream_t stream) {
      cuda::DenseProduct product{dense_[static_cast<size_t>(i) % dense_.size()].as<void>(),
                                 x_.as<void>(),
                                 nullptr,
                                 y_.as<void>(),
                                 static_cast<int>(shape_.rows),
                                 static_cast<int>(shape_.cols),
                                 static_cast<int>(tokens),
                                 static_cast<int64_t>(shape_.cols),
                                 static_cast<int64_t>(shape_.rows)};
      return cublas->multiply(product, workspace_.as<uint8_t>() + cuda::kPartialBytes, stream);
    };
    const auto packed = [&](bool early) {
      return [&, early](int i, cudaStream_t stream) {
        cuda::LinearCall call;
        call.x = x_.as<uint16_t>(), call.tokens = tokens, call.x_stride = shape_.cols;
        call.y = y_.as<uint16_t>(), call.y_stride = shape_.rows;
        call.exact = !options.free_order, call.early = early;
        call.workspace = workspace_.as<void>(), call.workspace_bytes = workspace_bytes_, call.stream = stream;
        return cuda::linear(*opened_[static_cast<size_t>(i) % opened_.size()], call);
      };
    };
    // By turns: long products are held back by the power that the GPU may take, which changes while it runs.
    const TimedGraph::Launch launches[] = {dense, packed(false), packed(true)};
    double* const medians[] = {&times.baseline, &times.plain, &times.early};
    std::vector<TimedGraph> graphs;
    std::vector<std::vector<double>> replays(std::size(launches));
    std::vector<uint16_t> expected, got;
    for (const TimedGraph::Launch& launch : launches) {
      GLYD_TRY(TimedGraph graph, TimedGraph::create(options.calls, launch));
      GLYD_CHECK(graph.replay());  // warms up
      GLYD_CHECK(read_y(tokens, graphs.empty() ? expected : got));
      for (size_t i = 0; i < got.size(); ++i) times.differing += got[i] != expected[i];
      graphs.push_back(std::move(graph));
    }
    for (int r = 0; r < options.replays; ++r) {
      for (size_t i = 0; i < graphs.size(); ++i) {
        GLYD_TRY(const double time, graphs[i].replay());
        replays[i].push_back(time);
      }
    }
    for (size_t i = 0; i < graphs.size(); ++i) *medians[i] = median_of(replays[i]);
    const cuda::RouteInfo route = cuda::route_of(pack, tokens, false, !options.free_order);
    times.exact = route.exact;
    times.route = route.kind == cuda::RouteKind::kFused ? "fused" : "decode";
    times.splits = route.splits;
    describe(pack, tokens, route);
    return times;
  }

  // Median over bursts short enough that the launch queue never fills. The empty launch has the fused kernel's
  // parameters and no units.
  Result<HostTimes> host_times(uint64_t tokens) {
    cuda::DevicePack& pack = *opened_[0];
    GLYD_CHECK(cuda::prepare(pack, std::vector{tokens}, false));
    const cuda::Route* const route = pack.exact_route(tokens, false);
    if (route == nullptr) return unsupported("host time: 2048 x 2048 is not fused here");
    cuda::LinearPlan idle = std::get<cuda::LinearPlan>(route->plan);
    idle.units = 0;
    cuda::LinearCall call;
    call.x = x_.as<uint16_t>(), call.tokens = tokens, call.x_stride = shape_.cols;
    call.y = y_.as<uint16_t>(), call.y_stride = shape_.rows;
    call.workspace = workspace_.as<void>(), call.workspace_bytes = workspace_bytes_;
    cuda::LinearParams params;
    params.plan = idle;
    CUtensorMap map{};
    HostTimes times;
    GLYD_TRY(times.call, median_burst([&] { return cuda::linear(pack, call); }));
    GLYD_TRY(times.empty_launch, median_burst([&] {
               void* arguments[] = {&params, &map};
               return cuda_check(cudaLaunchKernel(route->kernel, dim3(idle.blocks), dim3((idle.workers() + 1) * 32),
                                                  arguments, idle.shared_bytes, nullptr),
                                 "empty launch");
             }));
    return times;
  }

 private:
  static constexpr uint64_t kMostTokens = 4096;

  static Result<double> median_burst(const std::function<Result<void>()>& body) {
    constexpr int kBursts = 21, kCalls = 100;
    std::vector<double> times;
    for (int b = 0; b < kBursts; ++b) {
      GLYD_CHECK(cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kCalls; ++i) GLYD_CHECK(body());
      const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
      times.push_back(elapsed.count() / kCalls);
    }
    GLYD_CHECK(cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
    std::nth_element(times.begin(), times.begin() + kBursts / 2, times.end());
    return times[kBursts / 2];
  }

  Matrices(cuda::Context& context, const Shape& shape) : context_(&context), shape_(shape) {}

  Result<void> replicate(std::vector<cuda::DeviceBuffer>& out, const void* data, uint64_t bytes,
                         uint64_t rotate_bytes) {
    const uint64_t copies = std::clamp<uint64_t>(rotate_bytes / bytes + 1, 2, 64);
    for (uint64_t i = 0; i < copies; ++i) {
      GLYD_TRY(auto buffer, cuda::DeviceBuffer::allocate(bytes));
      const void* const source = i == 0 ? data : out[0].as<void>();
      GLYD_CHECK(cuda_check(cudaMemcpy(buffer.as<void>(), source, bytes, cudaMemcpyDefault), "cudaMemcpy"));
      out.push_back(std::move(buffer));
    }
    return Ok{};
  }

  Result<void> read_y(uint64_t tokens, std::vector<uint16_t>& out) {
    out.resize(tokens * shape_.rows);
    GLYD_CHECK(cuda_check(cudaMemcpy(out.data(), y_.as<void>(), out.size() * 2, cudaMemcpyDeviceToHost), "cudaMemcpy"));
    return cuda_check(cudaMemset(y_.as<void>(), 0xff, out.size() * 2), "cudaMemset");
  }

  void describe(cuda::DevicePack& pack, uint64_t tokens, const cuda::RouteInfo& route) const {
    if (route.kind != cuda::RouteKind::kFused) {
      cuda::Verdict verdict;
      const bool known = context_->find_verdict({shape_.rows, shape_.cols, tokens, false}, verdict);
      fmt::print(stderr, "  {} (verdict {}: best S={} with {} differing)\n", route.reason, known, verdict.splits,
                 verdict.differing);
      return;
    }
    const auto& either = pack.route_of_splits(tokens, route.splits)->plan;
    if (const auto* plan = std::get_if<cuda::LinearPlan>(&either)) {
      fmt::print(stderr, "  narrow S={} teams={} warps={} depth={} x_pieces={} shared={}K\n", plan->splits, plan->teams,
                 plan->team_warps, plan->depth, plan->x_pieces, plan->shared_bytes >> 10);
    } else if (const auto* staged = std::get_if<cuda::StagedPlan>(&either)) {
      fmt::print(stderr, "  staged S={} strips={} tiles={} decoders={} depth={} stages={} shared={}K\n", staged->splits,
                 staged->tile_strips, staged->tiles, staged->decoders(), cuda::kDecoderDepth, staged->stages,
                 staged->shared_bytes >> 10);
    } else if (const auto* ahead = std::get_if<cuda::AheadPlan>(&either)) {
      fmt::print(stderr, "  ahead tiles={} pairs={} group={} wave={} strips\n", ahead->tiles, ahead->pairs,
                 ahead->group_tiles, ahead->wave_strips);
    } else {
      const auto& wide = std::get<cuda::WidePlan>(either);
      fmt::print(stderr, "  wide S={} tile={} groups={} cluster={} tiles={} depth={} x_stages={} shared={}K\n",
                 wide.splits, wide.tile_tokens, wide.groups, wide.cluster, wide.tiles, wide.depth, wide.x_stages,
                 wide.shared_bytes >> 10);
    }
  }

  cuda::Context* context_;
  Shape shape_;
  double bits_ = 0;
  std::array<uint8_t, kPackHeaderBytes> header_{};
  uint64_t pack_bytes_ = 0;
  std::vector<cuda::DeviceBuffer> dense_, packs_;
  std::vector<std::unique_ptr<cuda::DevicePack>> opened_;
  cuda::DeviceBuffer x_, y_, workspace_;
  uint64_t workspace_bytes_ = 0;
};

void report_line(Report& report, const std::string& matrix, uint64_t tokens, const char* launch, const Times& times,
                 double time, double bits) {
  report.write({{"layout", "fast"},
                {"matrix", matrix},
                {"tokens", tokens},
                {"exact", times.exact},
                {"arch", "sm_90a"},
                {"launch", launch},
                {"route", times.route},
                {"splits", times.splits},
                {"ratio", round4(time / times.baseline)},
                {"time_us", round4(time)},
                {"baseline_us", round4(times.baseline)},
                {"differing_outputs", times.differing},
                {"bits", round4(bits)}});
}

// Microseconds of host time of one enqueued call, and of the launch inside it alone.
Result<void> report_host_time(cuda::Context& context, Report& report) {
  GLYD_TRY(Matrices matrices, Matrices::create(context, {2048, 2048}, 1));
  for (const uint64_t tokens : {uint64_t{1}, uint64_t{8}}) {
    GLYD_TRY(const HostTimes times, matrices.host_times(tokens));
    report.write({{"operation", "linear_host_time"},
                  {"tokens", tokens},
                  {"call_us", round4(times.call)},
                  {"empty_launch_us", round4(times.empty_launch)}});
  }
  return Ok{};
}

// The wide kernel's cuts against each other and against the narrow kernel: one line each.
Result<void> sweep(Matrices& matrices, const Shape& shape, const Options& options, Report& report) {
  struct Cut {
    const char* kernel;
    cuda::WideChoice wide;
  };
  const Cut cuts[] = {{"narrow", {}},        {"staged", {2}},       {"staged", {3}},       {"staged", {4}},
                      {"staged", {6}},       {"staged", {8}},       {"wide", {32, 1, 1}},  {"wide", {32, 2, 1}},
                      {"wide", {32, 3, 1}},  {"wide", {64, 1, 1}},  {"wide", {64, 1, 2}},  {"wide", {64, 2, 1}},
                      {"wide", {64, 3, 1}},  {"wide", {64, 3, 2}},  {"wide", {128, 1, 1}}, {"wide", {128, 1, 2}},
                      {"wide", {128, 2, 1}}, {"wide", {128, 2, 2}}, {"wide", {128, 3, 1}}, {"wide", {128, 3, 2}},
                      {"wide", {256, 1, 1}}, {"wide", {256, 1, 2}}, {"wide", {256, 2, 1}}, {"wide", {256, 2, 2}}};
  for (const uint64_t tokens : options.tokens) {
    for (const Cut& cut : cuts) {
      const uint32_t tile = cut.wide.tile_tokens;
      const std::string_view kernel = cut.kernel;
      if (kernel == "wide"
              ? tokens <= 16 || (tokens <= 128 && (tile < tokens || tile >= 4 * tokens)) || (tokens > 128 && tile < 128)
              : tokens > (kernel == "staged" ? 128 : 64) || (kernel == "staged" && tokens <= 16))
        continue;
      cuda::ContextOptions chosen;
      chosen.kernel = kernel == "wide"     ? cuda::KernelChoice::kWide
                      : kernel == "staged" ? cuda::KernelChoice::kStaged
                                           : cuda::KernelChoice::kNarrow;
      if (kernel == "staged") {
        chosen.staged_strips = tile;
      } else {
        chosen.wide = cut.wide;
      }
      GLYD_TRY(const auto context, cuda::Context::create(chosen));
      GLYD_CHECK(matrices.open_in(*context));
      GLYD_TRY(const Times times, matrices.measure(tokens, options));
      report.write({{"matrix", shape.name()},
                    {"tokens", tokens},
                    {"kernel", cut.kernel},
                    {"cut", {tile, cut.wide.groups, cut.wide.cluster}},
                    {"route", times.route},
                    {"splits", times.splits},
                    {"plain", round4(times.plain / times.baseline)},
                    {"early", round4(times.early / times.baseline)},
                    {"baseline_us", round4(times.baseline)},
                    {"differing_outputs", times.differing}});
      matrices.close();
    }
  }
  return Ok{};
}

Result<void> run_group(cuda::Context& context, const Group& group, const Options& options, Report& report) {
  std::map<uint64_t, Times> sums;
  double bits = 0, values = 0;
  for (const Shape& shape : group.shapes) {
    GLYD_TRY(Matrices matrices, Matrices::create(context, shape, options.rotate_bytes));
    if (options.sweep) {
      GLYD_CHECK(sweep(matrices, shape, options, report));
      continue;
    }
    const double count = static_cast<double>(shape.rows * shape.cols);
    bits += matrices.bits() * count;
    values += count;
    for (const uint64_t tokens : options.tokens) {
      GLYD_TRY(const Times times, matrices.measure(tokens, options));
      report_line(report, shape.name(), tokens, "plain", times, times.plain, matrices.bits());
      report_line(report, shape.name(), tokens, "early", times, times.early, matrices.bits());
      const auto [sum, first] = sums.try_emplace(tokens, times);
      if (first) continue;
      Times& total = sum->second;
      total.baseline += times.baseline, total.plain += times.plain, total.early += times.early;
      total.differing += times.differing;
      total.exact = total.exact && times.exact;
      if (total.route != times.route) total.route = "mixed";
    }
  }
  if (!std::string_view(group.name).ends_with("_layer")) return Ok{};
  for (const auto& [tokens, total] : sums) {
    report_line(report, group.name, tokens, "plain", total, total.plain, bits / values);
    report_line(report, group.name, tokens, "early", total, total.early, bits / values);
  }
  return Ok{};
}

cuda::ContextOptions context_options(const Options& options) {
  cuda::ContextOptions chosen;
  if (options.teams.size() == 4) {
    chosen.teams = {options.teams[0], options.teams[1], options.teams[2], options.teams[3]};
  }
  if (options.wide.size() == 3) chosen.wide = {options.wide[0], options.wide[1], options.wide[2]};
  chosen.staged_strips = options.strips;
  if (options.kernel == "narrow") chosen.kernel = cuda::KernelChoice::kNarrow;
  if (options.kernel == "staged") chosen.kernel = cuda::KernelChoice::kStaged;
  if (options.kernel == "wide") chosen.kernel = cuda::KernelChoice::kWide;
  if (options.kernel == "ahead") chosen.kernel = cuda::KernelChoice::kAhead;
  return chosen;
}

Result<void> run(const std::string& command, const Options& options) {
  GLYD_TRY(const auto context, cuda::Context::create(context_options(options)));
  GLYD_TRY(cuda::Cublas* const cublas, context->cublas());
  Report report(options.json);
  report.head(command, options.commit, *context, cublas->version());
  if (!options.sweep && options.host_time) GLYD_CHECK(report_host_time(*context, report));
  for (const std::string& name : options.groups) {
    bool known = false;
    for (const Group& group : kGroups) {
      if (name != group.name) continue;
      known = true;
      GLYD_CHECK(run_group(*context, group, options, report));
    }
    Shape shape{};
    if (!known && std::sscanf(name.c_str(), "%lux%lu", &shape.rows, &shape.cols) == 2) {
      GLYD_CHECK(run_group(*context, {"", {shape}}, options, report));
    } else if (!known) {
      return invalid_argument("--matrices {}: not a group and not ROWSxCOLS", name);
    }
  }
  return Ok{};
}

}  // namespace
}  // namespace glyd::bench

int main(int argc, char** argv) {
  CLI::App app{"Times products from packs on the GPU against cuBLAS's bf16 products."};
  glyd::bench::Options options;
  app.add_option("--tokens", options.tokens, "rows of x")->delimiter(',');
  app.add_option("--matrices", options.groups, "8b_layer, 32b_layer, small, or ROWSxCOLS")->delimiter(',');
  app.add_option("--json", options.json, "also write the lines to this file");
  app.add_option("--commit", options.commit, "what the head line says of the source");
  app.add_option("--calls", options.calls, "calls a graph");
  app.add_option("--replays", options.replays, "timed replays; the median counts");
  app.add_option("--teams", options.teams, "TEAMS,WARPS,DEPTH,PIECES of every plan, instead of its own choice")
      ->delimiter(',')
      ->expected(4);
  app.add_option("--kernel", options.kernel, "narrow, staged, wide, ahead or decode, where several could serve")
      ->check(CLI::IsMember({"auto", "narrow", "staged", "wide", "ahead", "decode"}));
  app.add_option("--wide", options.wide, "TOKENS,GROUPS,CLUSTER of the wide kernel's plans (0: its own choice)")
      ->delimiter(',')
      ->expected(3);
  app.add_option("--strips", options.strips, "strips of the staged kernel's tiles (0: its own choice)");
  app.add_flag("--sweep", options.sweep, "every cut of the wide kernel, and the narrow one");
  app.add_flag("--no-host-time{false}", options.host_time, "leave the host time of a call out");
  app.add_flag("--free", options.free_order, "products in any order instead of exact ones");
  CLI11_PARSE(app, argc, argv);
  const auto result = glyd::bench::run(glyd::bench::command_line(argc, argv), options);
  if (!result) fmt::print(stderr, "linear_bench: {}\n", result.error().message);
  return result ? 0 : 1;
}
