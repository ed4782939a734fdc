// cmd_fit.cpp - glyd fit SRC --gpu 48GB.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "report.hpp"
#include "table.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct FitArguments {
  std::string source, gpu, revision;
  uint64_t context = 8192, batch = 1;
};

std::string table_of(const nlohmann::ordered_json& document) {
  const uint64_t gpu = document.at("gpu_bytes"), cache = document.at("kv_cache_bytes"),
                 runtime = document.at("runtime_bytes");
  std::string text = fmt::format("{} in {} ({}) of GPU memory\n", document.at("model").get<std::string>(),
                                 format_binary_bytes(gpu), format_bytes(gpu));
  text += fmt::format("KV cache {} ({} tokens of context, batch {}), working memory {}\n\n", format_binary_bytes(cache),
                      format_count(document.at("context")), format_count(document.at("batch")),
                      format_binary_bytes(runtime));
  Table table({kLeft, kRight, kRight, kRight, kLeft, kLeft});
  table.row({"layout", "weights", "in all", "of memory", "fits", ""});
  table.rule();
  bool estimated = false;
  for (const auto& row : document.at("rows")) {
    const bool measured = row.at("measured");
    estimated = estimated || !measured;
    const uint64_t total = row.at("total_bytes");
    table.row({row.at("layout"), format_binary_bytes(row.at("weights_bytes")), format_binary_bytes(total),
               format_percent(total, gpu), row.at("fits").get<bool>() ? "yes" : "no", measured ? "" : "estimated"});
  }
  text += table.text();
  const auto& most = document.at("max_context");
  if (most.is_number() && document.at("context") > most)
    text += fmt::format("\nThe model is made for {} tokens of context.\n", format_count(most));
  if (estimated) text += "\nEstimated from ratios measured on other models; `glyd sizes` measures this one.\n";
  return text;
}

int fit(const FitArguments& arguments, const Common& common) {
  glyd_fit_options options{};
  options.struct_size = sizeof options;
  options.gpu = arguments.gpu.c_str();
  options.context = arguments.context;
  options.batch = arguments.batch;
  options.revision = arguments.revision.empty() ? nullptr : arguments.revision.c_str();
  Document document;
  const glyd_status status = glyd_checkpoint_fit(arguments.source.c_str(), &options, document.out());
  return finish(status, document, common, table_of);
}

}  // namespace

void declare_fit(Verb& verb) {
  auto arguments = std::make_shared<FitArguments>();
  verb.summary = "will it fit in a GPU's memory: bf16 against each layout";
  verb.description =
      "Adds up the weights, the KV cache and 1.5 GiB of working memory, and says for bf16 and each layout whether that "
      "fits. Reads headers only, so it "
      "answers at once.";
  verb.positional("SRC", arguments->source,
                  "a model directory, packed or not, a .safetensors file, or a repo id in the Hugging Face cache",
                  Offer::kPaths);
  verb.option("-g,--gpu", arguments->gpu, "SIZE",
              "memory such as 48GB or 80GiB, a number of bytes, or a GPU's name such as H200 or RTX 4090; GB is 10^9 "
              "bytes, GiB and G are 2^30",
              Offer::kChoices, {"16GB", "24GB", "48GB", "80GB", "H100", "H200"});
  verb.require_last();
  verb.option("-c,--context", arguments->context, 1, 1 << 30, "tokens of context; 8192 unless given");
  verb.option("-b,--batch", arguments->batch, 1, 1 << 20, "sequences at once; 1 unless given");
  verb.revision_option(arguments->revision);
  verb.examples = {"glyd fit my-model --gpu 24GB", "glyd fit my-model --gpu H200 --context 32768 --batch 8"};
  verb.notes = {"Exit status 0 whether it fits or not: read the table, or `fits` in the document of --json."};
  verb.run = [arguments](const Common& common) { return fit(*arguments, common); };
}

}  // namespace glyd::cli
