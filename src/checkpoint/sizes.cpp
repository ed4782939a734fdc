// sizes.cpp - what every matrix of a model takes in each layout, seen by packing and decoding it.
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/aligned_buffer.hpp"
#include "checkpoint/axis.hpp"
#include "checkpoint/batches.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/kinds.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/shard_writer.hpp"
#include "checkpoint/source.hpp"
#include "checkpoint/streams.hpp"
#include "weights/weights.hpp"

namespace glyd {
namespace {

struct Matrix {
  const TensorEntry* entry = nullptr;
  Grid grid;
  uint64_t fast_bytes = 0, small_bytes = 0;
  double floor_bits = 0;
};

// Sums over matrices. In a layout that does not make it smaller a matrix counts with its bf16 bytes, as it would be
// carried.
struct Sums {
  uint64_t count = 0, bf16_bytes = 0, fast_bytes = 0, small_bytes = 0;
  double floor_bits_total = 0;

  void add(const Matrix& matrix) {
    ++count;
    bf16_bytes += matrix.entry->bytes();
    fast_bytes += matrix.fast_bytes;
    small_bytes += matrix.small_bytes;
    floor_bits_total += matrix.floor_bits * static_cast<double>(matrix.entry->bytes() / 2);
  }
  double weights() const { return static_cast<double>(bf16_bytes) / 2; }
  double floor_bits() const { return count == 0 ? 0 : floor_bits_total / weights(); }
  double bits(uint64_t bytes) const { return count == 0 ? 0 : 8 * static_cast<double>(bytes) / weights(); }
};

OrderedJson sums_json(const Sums& sums) {
  return {{"floor_bits", sums.floor_bits()},
          {"fast_bits", sums.bits(sums.fast_bytes)},
          {"small_bits", sums.bits(sums.small_bytes)},
          {"bf16_bytes", sums.bf16_bytes},
          {"fast_bytes", sums.fast_bytes},
          {"small_bytes", sums.small_bytes}};
}

class Model {
 public:
  Model(const Source& source, int threads, Progress& progress)
      : source_(source), threads_(threads), progress_(progress) {}

  Result<OrderedJson> run() {
    if (const SourceFile* file = source_.find_other(kConfigName)) {
      GLYD_TRY(const std::string text, read_text_file(file->absolute, kMostConfigBytes));
      GLYD_TRY(const OrderedJson config, parse_config(text, file->absolute.string()));
      model_type_ = model_type_of(config);
    }
    for (size_t i = 0; i < source_.tensor_files.size(); ++i) GLYD_CHECK(measure_file(i));
    return document();
  }

 private:
  Result<void> measure_file(size_t index) {
    const SafetensorsHeader& header = source_.headers[index];
    GLYD_TRY(const File file, File::open_read(source_.tensor_files[index].absolute));
    std::vector<Matrix> matrices;
    std::vector<uint64_t> sizes;
    for (const auto& entry : header.tensors) {
      if (!is_packable(entry)) {
        carry(entry);
        continue;
      }
      matrices.push_back({&entry, grid_of(entry.shape, is_stored_in_out(model_type_, entry.name, entry.shape.size()))});
      sizes.push_back(entry.bytes());
    }
    for (const auto& [begin, end] : make_batches(sizes)) {
      GLYD_CHECK(run_batch(begin, end, threads_, [&](size_t i, int threads) {
        const TensorEntry& entry = *matrices[i].entry;
        return naming_memory(fmt::format("{}: tensor {}", file.path(), json_quote(entry.name)), 3 * entry.bytes(),
                             [&] { return measure(file, header.data_offset(), matrices[i], threads); });
      }));
      for (size_t i = begin; i < end; ++i)
        GLYD_CHECK(progress_.advance(matrices[i].entry->bytes(), matrices[i].entry->name));
    }
    for (const auto& matrix : matrices) {
      // What no layout makes smaller is not packed.
      if (std::min(matrix.fast_bytes, matrix.small_bytes) < matrix.entry->bytes()) {
        matrices_.push_back(matrix);
      } else {
        carry(*matrix.entry);
      }
    }
    return Ok{};
  }

  void carry(const TensorEntry& entry) {
    ++carried_count_;
    carried_bytes_ += entry.bytes();
    dtypes_[entry.dtype->name] += entry.bytes();
  }

  Result<void> measure(const File& file, uint64_t start, Matrix& matrix, int threads) const {
    AlignedBuffer bytes(matrix.entry->bytes());
    GLYD_CHECK(file.read_at(start + matrix.entry->begin, bytes.mutable_bytes()));
    const std::span<const uint16_t> values(reinterpret_cast<const uint16_t*>(bytes.data()), bytes.size() / 2);
    matrix.floor_bits = entropy_floor_bits(exponent_counts(values, threads));
    const bool transposed = is_stored_in_out(model_type_, matrix.entry->name, matrix.entry->shape.size());
    for (const Layout layout : {Layout::kFast, Layout::kSmall}) {
      auto packed = pack_tensor(values, matrix.grid, transposed, layout, threads);
      const std::string place = fmt::format("{}: tensor {}", file.path(), json_quote(matrix.entry->name));
      if (!packed) return std::move(packed).at(place).error();
      auto same = decodes_to(packed.value().bytes(), threads, values);
      if (!same) return std::move(same).at(place).error();
      if (!same.value()) {
        return mismatch("{}: its pack in layout {} decodes to other bytes (bad memory, or a bug in this library)",
                        place, layout_text(layout));
      }
      (layout == Layout::kFast ? matrix.fast_bytes : matrix.small_bytes) =
          std::min<uint64_t>(packed.value().size(), bytes.size());
    }
    return Ok{};
  }

  OrderedJson document() const {
    OrderedJson list = OrderedJson::array();
    Sums total;
    std::map<std::string_view, Sums> kinds;
    for (const Matrix& matrix : matrices_) {
      Sums one;
      for (Sums* sums : {&one, &total, &kinds[kind_of(matrix.entry->name)]}) sums->add(matrix);
      list.push_back({{"name", matrix.entry->name},
                      {"rows", matrix.grid.rows},
                      {"cols", matrix.grid.cols},
                      {"stack", matrix.grid.stack},
                      {"kind", kind_of(matrix.entry->name)},
                      {"floor_bits", one.floor_bits()},
                      {"fast_bits", one.bits(one.fast_bytes)},
                      {"small_bits", one.bits(one.small_bytes)}});
    }
    OrderedJson kind_list = OrderedJson::array();
    for (const auto& [kind, sums] : kinds) {
      kind_list.push_back({{"kind", kind},
                           {"count", sums.count},
                           {"bf16_bytes", sums.bf16_bytes},
                           {"fast_bytes", sums.fast_bytes},
                           {"small_bytes", sums.small_bytes},
                           {"floor_bits", sums.floor_bits()},
                           {"fast_bits", sums.bits(sums.fast_bytes)},
                           {"small_bits", sums.bits(sums.small_bytes)}});
    }
    OrderedJson dtypes = OrderedJson::object();
    for (const auto& [dtype, bytes] : dtypes_) dtypes[dtype] = bytes;
    return {{"name", source_.name},
            {"matrices", std::move(list)},
            {"kinds", std::move(kind_list)},
            {"total", sums_json(total)},
            {"carried", {{"count", carried_count_}, {"bytes", carried_bytes_}, {"dtypes", std::move(dtypes)}}}};
  }

  const Source& source_;
  int threads_;
  Progress& progress_;
  std::string model_type_;
  std::vector<Matrix> matrices_;
  uint64_t carried_count_ = 0, carried_bytes_ = 0;
  std::map<std::string, uint64_t> dtypes_;
};

}  // namespace

Result<OrderedJson> checkpoint_sizes(const std::vector<std::string>& texts, const SizesOptions& options) {
  std::vector<Source> sources;
  uint64_t total = 0;
  for (const auto& text : texts) {
    GLYD_TRY(Source source, open_source(text, options.revision));
    for (const auto& header : source.headers) {
      for (const auto& entry : header.tensors) total += is_packable(entry) ? entry.bytes() : 0;
    }
    sources.push_back(std::move(source));
  }
  Progress progress(options.progress, total);
  OrderedJson models = OrderedJson::array();
  for (const auto& source : sources) {
    GLYD_TRY(OrderedJson model, Model(source, options.threads, progress).run());
    models.push_back(std::move(model));
  }
  GLYD_CHECK(progress.finish(sources.empty() ? "" : sources.back().name));
  return OrderedJson{{"models", std::move(models)}};
}

}  // namespace glyd
