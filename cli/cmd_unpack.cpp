// cmd_unpack.cpp - glyd unpack DIR OUT.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "progress.hpp"
#include "report.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct UnpackArguments {
  std::string directory, target;
  int threads = 0;
  bool overwrite = false, salvage = false;
};

std::string counted(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string salvage_summary(const nlohmann::ordered_json& done) {
  const nlohmann::ordered_json& found = done.at("salvage");
  const uint64_t damaged = found.at("files_damaged"), changed = found.at("files_changed"),
                 missing = found.at("files_missing"), whole = found.at("files_whole"), lost = found.at("bytes_lost");
  std::string text = fmt::format("salvaged {}: {} of {} whole", done.at("target").get<std::string>(),
                                 format_count(whole), counted(whole + damaged + changed + missing, "file"));
  if (damaged > 0)
    text += fmt::format(", {} with zeros in place of {}", format_count(damaged),
                        counted(found.at("tensors_lost"), "tensor"));
  if (changed > 0) text += fmt::format(", {} as now, changed since the pack", format_count(changed));
  if (missing > 0) text += fmt::format(", {} left out", format_count(missing));
  if (lost > 0) text += fmt::format("; {} of {} lost", format_bytes(lost), format_bytes(done.at("bytes")));
  if (damaged + changed + missing == 0) text += "; nothing lost";
  return text + fmt::format(" ({})\n", format_seconds(done.at("seconds")));
}

std::string summary(const nlohmann::ordered_json& done) {
  if (done.contains("salvage")) return salvage_summary(done);
  const uint64_t files = done.at("files");
  return fmt::format("unpacked {}: {} file{}, {}, every hash checked ({})\n", done.at("target").get<std::string>(),
                     format_count(files), files == 1 ? "" : "s", format_bytes(done.at("bytes")),
                     format_seconds(done.at("seconds")));
}

int unpack(const UnpackArguments& arguments, const Common& common) {
  glyd_unpack_options options{};
  options.struct_size = sizeof options;
  options.threads = arguments.threads;
  options.overwrite = arguments.overwrite;
  options.salvage = arguments.salvage;
  Document document;
  glyd_status status = GLYD_OK;
  {
    Progress progress("unpacking", common);
    options.progress = &Progress::callback;
    options.user = &progress;
    status = glyd_checkpoint_unpack(arguments.directory.c_str(), arguments.target.c_str(), &options, document.out());
  }
  // A salvage that did not find everything has made its target all the same.
  if (status != GLYD_OK && *document.data() != '\0' && !common.json && !common.quiet) {
    std::fputs(summary(nlohmann::ordered_json::parse(document.data())).c_str(), stdout);
    std::fflush(stdout);
  }
  return finish_summary(status, document, common, summary);
}

}  // namespace

void declare_unpack(Verb& verb) {
  auto arguments = std::make_shared<UnpackArguments>();
  verb.summary = "give the source's files back, byte for byte";
  verb.description =
      "Restores what was packed: the model directory with every file and subfolder, or the one .safetensors file. "
      "Everything is checked as by "
      "`glyd verify` before OUT appears.";
  verb.positional("DIR", arguments->directory, "a directory made by `glyd pack`", Offer::kDirectories);
  verb.positional("OUT", arguments->target, "the directory to make, or the file where one file was packed",
                  Offer::kPaths);
  verb.threads_option(arguments->threads);
  verb.flag("--overwrite", arguments->overwrite,
            "replace OUT if it exists; refused if that would lose files in it that the source does not have");
  verb.flag("--salvage", arguments->salvage,
            "of a damaged DIR, restore everything that is intact, changed files as they are and zeros for damaged "
            "tensors, and name each; exit status 1 if there are any; never overwrites");
  verb.examples = {"glyd unpack my-model-glyd my-model", "glyd unpack my-model-glyd back && diff -r my-model back",
                   "glyd unpack --salvage damaged-glyd rescued"};
  verb.notes = {
      "Permissions come back, times do not; a symbolic link comes back as the file that it led to.",
      "OUT appears only when it is whole. Work goes on in .OUT.glyd-staging beside it, which is taken away after an "
      "error or Ctrl-C, and by the next unpack to the same OUT after `kill -9`."};
  verb.run = [arguments](const Common& common) { return unpack(*arguments, common); };
}

}  // namespace glyd::cli
