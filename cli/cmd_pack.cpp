// cmd_pack.cpp - glyd pack SRC OUT.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "progress.hpp"
#include "report.hpp"
#include "table.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct PackArguments {
  std::string source, target, layout = "auto", revision;
  int threads = 0;
  bool overwrite = false, no_verify = false, hash_files = false;
};

std::string summary(const nlohmann::ordered_json& document) {
  const uint64_t bf16 = document.at("bf16_bytes"), packed = document.at("packed_bytes");
  const uint64_t source = document.at("source_bytes"), target = document.at("target_bytes");
  Table table({kLeft, kLeft});
  table.row({"packed", fmt::format("{} (layout {})", document.at("target").get<std::string>(),
                                   document.at("layout").get<std::string>())});
  table.row({"tensors", fmt::format("{} packed, {} carried as they are", format_count(document.at("tensors_packed")),
                                    format_count(document.at("tensors_carried")))});
  if (bf16 > 0) {
    table.row(
        {"weights", fmt::format("{} of bf16 in {}: {:.2f} bits a weight, {}", format_bytes(bf16), format_bytes(packed),
                                document.at("bits_per_weight").get<double>(), format_percent(packed, bf16))});
  } else {
    table.row({"weights", "no bf16 matrices: nothing was packed, every tensor is carried as it is"});
  }
  table.row({"all files",
             fmt::format("{} in {}, {}", format_bytes(source), format_bytes(target), format_percent(target, source))});
  if (bf16 > 0)
    table.row({"checked", document.at("verified").get<bool>()
                              ? "every packed tensor was decoded and compared before it was written"
                              : "no (--no-verify); `glyd verify` does it now"});
  if (const uint64_t resumed = document.at("shards_resumed"); resumed > 0) {
    table.row({"resumed", fmt::format("{} of {} shards were done by a pack that was stopped", format_count(resumed),
                                      format_count(document.at("shards")))});
  }
  table.row({"time", format_seconds(document.at("seconds"))});
  return table.text();
}

int pack(const PackArguments& arguments, const Common& common) {
  glyd_pack_options options{};
  options.struct_size = sizeof options;
  // raw has a name, but is what single tensors get where nothing else pays: not a layout to ask for.
  const bool known = glyd_layout_from_name(arguments.layout.c_str(), &options.layout) == GLYD_OK;
  if (!known || options.layout == GLYD_LAYOUT_RAW) {
    return usage_error(
        fmt::format("pack: unknown layout '{}': choose fast, small or auto (mma12 is fast, mma is small)",
                    arguments.layout),
        "glyd pack --help");
  }
  options.threads = arguments.threads;
  options.overwrite = arguments.overwrite;
  options.no_verify = arguments.no_verify;
  options.hash_files = arguments.hash_files;
  options.revision = arguments.revision.empty() ? nullptr : arguments.revision.c_str();
  Document document;
  glyd_status status = GLYD_OK;
  {
    Progress progress("packing", common);
    progress.goes_on();
    options.progress = &Progress::callback;
    options.note = &Progress::note;
    options.user = &progress;
    status = glyd_checkpoint_pack(arguments.source.c_str(), arguments.target.c_str(), &options, document.out());
  }
  if (status == GLYD_OK && nlohmann::ordered_json::parse(document.data()).at("bf16_bytes") == 0) {
    print_note(fmt::format("{}: no bf16 matrices, so nothing became smaller: only bf16 is packed, every other dtype is "
                           "carried as it is. `glyd compress` takes any file",
                           arguments.source),
               common);
  }
  return finish_summary(status, document, common, summary);
}

}  // namespace

void declare_pack(Verb& verb) {
  auto arguments = std::make_shared<PackArguments>();
  verb.summary = "pack a model: the same weights, bit for bit, in about 70% of the bytes";
  verb.description =
      "Packs the bf16 matrices of a model into the new directory OUT and carries everything else along unchanged, so "
      "that `glyd unpack` gives "
      "the source back byte for byte. Every tensor is decoded and compared before it is written.";
  verb.positional("SRC", arguments->source,
                  "a model directory, one .safetensors file, or a repo id in the Hugging Face cache", Offer::kPaths);
  verb.positional("OUT", arguments->target, "the directory to make", Offer::kDirectories);
  verb.option("-l,--layout", arguments->layout, "NAME",
              "layout: fast (quickest products, about 11.3 bits a weight), small (least memory, about 10.7) or auto, "
              "the default, which is fast; "
              "mma12 and mma are other names of fast and small",
              Offer::kChoices, {"fast", "small", "auto", "mma12", "mma"});
  verb.threads_option(arguments->threads);
  verb.revision_option(arguments->revision);
  verb.flag(
      "--overwrite", arguments->overwrite,
      "replace OUT if it is a packed model already, or an empty directory; refused if that would lose files in it "
      "that SRC does not have");
  verb.flag("--no-verify", arguments->no_verify, "do not decode and compare each tensor");
  verb.flag("--hash-files", arguments->hash_files,
            "keep the sha256 of each whole source file too (reads the source twice)");
  verb.examples = {"glyd pack my-model my-model-glyd", "glyd pack my-model my-model-small --layout small",
                   "glyd pack Qwen/Qwen3-8B qwen3-8b-glyd --revision main",
                   "glyd pack model.safetensors model-glyd --json"};
  verb.notes = {
      "OUT appears only when it is whole. Work goes on in .OUT.glyd-staging beside it. A pack that was stopped "
      "(Ctrl-C, "
      "a full disk, `kill -9`) leaves its finished shards there, of which a model may have one or many; the same pack "
      "goes on from them, says so, and takes the directory away. To give it up, remove the directory.",
      "In OUT nothing may be edited or added: change the source and pack it again.",
      "Tensors of other dtypes (fp32, fp16, fp8, integers) are carried as they are. Permissions are kept, times are "
      "not; a symbolic link to a file of the model is packed as that file, other links are refused."};
  verb.run = [arguments](const Common& common) { return pack(*arguments, common); };
}

}  // namespace glyd::cli
