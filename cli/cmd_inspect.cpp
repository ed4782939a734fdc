// cmd_inspect.cpp - glyd inspect DIR|FILE.
#include <memory>
#include <nlohmann/json.hpp>

#include "outline.hpp"
#include "report.hpp"

namespace glyd::cli {
namespace {

struct InspectArguments {
  std::string path, revision;
};

int inspect(const InspectArguments& arguments, const Common& common) {
  Document document;
  const char* revision = arguments.revision.empty() ? nullptr : arguments.revision.c_str();
  const glyd_status status = glyd_checkpoint_inspect(arguments.path.c_str(), revision, document.out());
  return finish(status, document, common, outline);
}

}  // namespace

void declare_inspect(Verb& verb) {
  auto arguments = std::make_shared<InspectArguments>();
  verb.summary = "what is in a model or a packed model, without decoding";
  verb.description =
      "Lists what a packed directory, a model directory, a repo id or one file (a pack, a shard, any .safetensors "
      "file) holds. Reads headers and the "
      "manifest only; `glyd verify` checks the data.";
  verb.positional("PATH", arguments->path,
                  "a directory, packed or not, one file, or a repo id in the Hugging Face cache", Offer::kPaths);
  verb.revision_option(arguments->revision);
  verb.examples = {"glyd inspect my-model-glyd", "glyd inspect model.safetensors --json | jq ."};
  verb.run = [arguments](const Common& common) { return inspect(*arguments, common); };
}

}  // namespace glyd::cli
