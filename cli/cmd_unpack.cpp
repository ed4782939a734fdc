// cmd_unpack.cpp - glyd unpack DIR OUT.
#include <fmt/format.h>

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
  bool overwrite = false;
};

int unpack(const UnpackArguments& arguments, const Common& common) {
  glyd_unpack_options options{};
  options.struct_size = sizeof options;
  options.threads = arguments.threads;
  options.overwrite = arguments.overwrite;
  Document document;
  glyd_status status = GLYD_OK;
  {
    Progress progress("unpacking", common);
    options.progress = &Progress::callback;
    options.user = &progress;
    status = glyd_checkpoint_unpack(arguments.directory.c_str(), arguments.target.c_str(), &options, document.out());
  }
  return finish_summary(status, document, common, [](const nlohmann::ordered_json& done) {
    const uint64_t files = done.at("files");
    return fmt::format("unpacked {}: {} file{}, {}, every hash checked ({})\n", done.at("target").get<std::string>(),
                       format_count(files), files == 1 ? "" : "s", format_bytes(done.at("bytes")),
                       format_seconds(done.at("seconds")));
  });
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
  verb.flag("--overwrite", arguments->overwrite, "replace OUT if it exists");
  verb.examples = {"glyd unpack my-model-glyd my-model", "glyd unpack my-model-glyd back && diff -r my-model back"};
  verb.run = [arguments](const Common& common) { return unpack(*arguments, common); };
}

}  // namespace glyd::cli
