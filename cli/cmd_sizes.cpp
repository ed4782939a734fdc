// cmd_sizes.cpp - glyd sizes SRC...
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "progress.hpp"
#include "report.hpp"
#include "table.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct SizesArguments {
  std::vector<std::string> sources;
  std::string revision;
  int threads = 0;
};

std::string bits(const nlohmann::ordered_json& row, const char* key) {
  return fmt::format("{:.2f}", row.at(key).get<double>());
}

std::vector<std::string> cells(const std::string& kind, const std::string& count, const nlohmann::ordered_json& row) {
  const uint64_t bf16 = row.at("bf16_bytes"), fast = row.at("fast_bytes"), small = row.at("small_bytes");
  return {kind,
          count,
          format_bytes(bf16),
          format_bytes(fast),
          format_percent(fast, bf16),
          format_bytes(small),
          format_percent(small, bf16),
          bits(row, "fast_bits"),
          bits(row, "small_bits"),
          bits(row, "floor_bits")};
}

std::string model_table(const nlohmann::ordered_json& model) {
  Table table({kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight});
  table.row({"kind", "count", "bf16", "fast", "", "small", "", "fast bits", "small bits", "floor bits"});
  table.rule();
  uint64_t count = 0;
  for (const auto& kind : model.at("kinds")) {
    count += kind.at("count").get<uint64_t>();
    table.row(cells(kind.at("kind"), format_count(kind.at("count")), kind));
  }
  table.rule();
  table.row(cells("all", format_count(count), model.at("total")));
  std::string text = model.at("name").get<std::string>() + "\n\n";
  text += count > 0 ? table.text() : "No bf16 matrices: packing would save nothing.\n";
  const nlohmann::ordered_json& carried = model.at("carried");
  if (carried.at("count").get<uint64_t>() > 0) {
    std::vector<std::string> dtypes;
    for (const auto& [dtype, bytes] : carried.at("dtypes").items()) dtypes.push_back(dtype + " " + format_bytes(bytes));
    text += fmt::format("\nCarried as they are: {} tensors, {} ({}).\n", format_count(carried.at("count")),
                        format_bytes(carried.at("bytes")), fmt::join(dtypes, ", "));
  }
  return text;
}

int sizes(const SizesArguments& arguments, const Common& common) {
  glyd_sizes_options options{};
  options.struct_size = sizeof options;
  options.threads = arguments.threads;
  options.revision = arguments.revision.empty() ? nullptr : arguments.revision.c_str();
  std::vector<const char*> sources;
  for (const std::string& source : arguments.sources) sources.push_back(source.c_str());
  Document document;
  glyd_status status = GLYD_OK;
  {
    Progress progress("measuring", common);
    options.progress = &Progress::callback;
    options.user = &progress;
    status = glyd_checkpoint_sizes(sources.data(), sources.size(), &options, document.out());
  }
  return finish(status, document, common, [](const nlohmann::ordered_json& found) {
    std::string text;
    for (const auto& model : found.at("models")) text += (text.empty() ? "" : "\n\n") + model_table(model);
    return text;
  });
}

}  // namespace

void declare_sizes(Verb& verb) {
  auto arguments = std::make_shared<SizesArguments>();
  verb.summary = "what packing would save, measured: each kind of matrix in both layouts";
  verb.description =
      "Packs every bf16 matrix in memory in both layouts, decodes it and compares it bit for bit, and prints the sizes "
      "beside bf16 and the entropy "
      "floor. Nothing is written.";
  verb.positional("SRC", arguments->sources,
                  "model directories, .safetensors files or repo ids in the Hugging Face cache", Offer::kPaths);
  verb.threads_option(arguments->threads);
  verb.revision_option(arguments->revision);
  verb.examples = {"glyd sizes my-model", "glyd sizes model-a model-b --json"};
  verb.notes = {
      "Bits are bits a weight. The floor is 8 bits (sign and mantissa, which do not compress) plus the entropy of the "
      "exponents: no coding of "
      "single exponents can be below. All "
      "overheads are counted."};
  verb.run = [arguments](const Common& common) { return sizes(*arguments, common); };
}

}  // namespace glyd::cli
