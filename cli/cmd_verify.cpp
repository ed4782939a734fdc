// cmd_verify.cpp - glyd verify DIR [--source SRC].
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "progress.hpp"
#include "report.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct VerifyArguments {
  std::string directory, source, revision;
  int threads = 0;
};

int verify(const VerifyArguments& arguments, const Common& common) {
  glyd_verify_options options{};
  options.struct_size = sizeof options;
  options.threads = arguments.threads;
  options.source = arguments.source.empty() ? nullptr : arguments.source.c_str();
  options.revision = arguments.revision.empty() ? nullptr : arguments.revision.c_str();
  Document document;
  glyd_status status = GLYD_OK;
  {
    Progress progress("verifying", common);
    options.progress = &Progress::callback;
    options.user = &progress;
    status = glyd_checkpoint_verify(arguments.directory.c_str(), &options, document.out());
  }
  return finish_summary(status, document, common, [&](const nlohmann::ordered_json& found) {
    const auto ignored = found.at("ignored").get<std::vector<std::string>>();
    if (!ignored.empty())
      print_note(fmt::format("not of the checkpoint, and not looked at: {}", fmt::join(ignored, ", ")), common);
    const uint64_t files = found.at("files");
    return fmt::format("ok: {}: {} tensors and {} file{}, {}, {} ({})\n", arguments.directory,
                       format_count(found.at("tensors")), format_count(files), files == 1 ? "" : "s",
                       format_bytes(found.at("bytes")),
                       arguments.source.empty() ? "all as packed" : "all equal to " + arguments.source,
                       format_seconds(found.at("seconds")));
  });
}

}  // namespace

void declare_verify(Verb& verb) {
  auto arguments = std::make_shared<VerifyArguments>();
  verb.summary = "check a packed model: decode every tensor, check every hash";
  verb.description =
      "Reads everything in DIR, decodes every tensor and compares it and every other file with the sha256 kept when it "
      "was packed. With --source, "
      "everything is compared with that source too, byte for byte.";
  verb.positional("DIR", arguments->directory, "a directory made by `glyd pack`", Offer::kDirectories);
  verb.option("-s,--source", arguments->source, "SRC",
              "compare with this model directory, .safetensors file or repo id", Offer::kPaths);
  verb.revision_option(arguments->revision);
  verb.threads_option(arguments->threads);
  verb.examples = {"glyd verify my-model-glyd", "glyd verify my-model-glyd --source my-model",
                   "glyd verify my-model-glyd && rm -r my-model"};
  verb.notes = {
      "Exit status 1 means that the data is wrong; each fault gets a line that names the file and the tensor (the "
      "first "
      "20 do). `glyd unpack --salvage` restores what is intact.",
      "Files are counted as the source had them. In DIR nothing may be edited, and nothing added but what hubs and "
      "desktops put there: .git, .gitattributes, .gitignore and .cache at its top, .DS_Store and Thumbs.db anywhere."};
  verb.run = [arguments](const Common& common) { return verify(*arguments, common); };
}

}  // namespace glyd::cli
