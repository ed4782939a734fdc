// cmd_list.cpp - glyd list FILE...
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "codec_verb.hpp"
#include "report.hpp"
#include "table.hpp"
#include "units.hpp"

namespace glyd::cli {
namespace {

struct ListArguments {
  std::vector<std::string> sources;
  bool recursive = false, units = false;
};

const char* name_of(glyd_level level) {
  return level == GLYD_LEVEL_DEFAULT ? "default" : level == GLYD_LEVEL_ULTRA ? "ultra" : "max";
}

Outcome describe(const std::string& path, bool with_units, nlohmann::ordered_json& document) {
  InputFile source;
  if (Outcome opened = source.open(path, InputFile::Reads::kAnywhere); !opened.ok()) return opened;
  FrameFile frame;
  if (Outcome opened = frame.open(source); !opened.ok()) return opened;
  glyd_frame_info info{};
  if (Outcome known = frame.info(info); !known.ok()) return known;
  document = {{"file", path},
              {"level", name_of(info.level)},
              {"frames", info.frames},
              {"units", info.units},
              {"content_bytes", info.content_bytes},
              {"frame_bytes", info.frame_bytes},
              {"largest_unit_bytes", info.largest_unit},
              {"memory_bytes", info.memory_bytes},
              {"metadata_bytes", info.metadata_bytes}};
  if (!with_units) return {};
  nlohmann::ordered_json& list = document["list"] = nlohmann::ordered_json::array();
  for (uint64_t i = 0; i < info.units; ++i) {
    glyd_unit_info unit{};
    if (Outcome known = frame.unit(i, unit); !known.ok()) return known;
    list.push_back({{"content_begin", unit.content_begin},
                    {"content_bytes", unit.content_bytes},
                    {"frame_offset", unit.frame_offset},
                    {"stored_bytes", unit.stored_bytes}});
  }
  return {};
}

std::string table_of(const std::vector<nlohmann::ordered_json>& files) {
  Table table({kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kLeft});
  table.row({"level", "frames", "units", "content", "file", "", "memory", "name"});
  table.rule();
  for (const auto& file : files) {
    const uint64_t content = file.at("content_bytes"), stored = file.at("frame_bytes");
    table.row({file.at("level"), format_count(file.at("frames")), format_count(file.at("units")), format_bytes(content),
               format_bytes(stored), format_percent(stored, content), format_binary_bytes(file.at("memory_bytes")),
               file.at("file")});
  }
  return table.text();
}

std::string units_of(const nlohmann::ordered_json& file) {
  Table table({kRight, kRight, kRight, kRight, kRight});
  table.row({"content from", "bytes", "file from", "bytes", ""});
  table.rule();
  for (const auto& unit : file.at("list")) {
    const uint64_t content = unit.at("content_bytes"), stored = unit.at("stored_bytes");
    table.row({format_count(unit.at("content_begin")), format_count(content), format_count(unit.at("frame_offset")),
               format_count(stored), format_percent(stored, content)});
  }
  return "\n" + file.at("file").get<std::string>() + "\n" + table.text();
}

int list(const ListArguments& arguments, const Common& common) {
  std::vector<std::string> files;
  const Outcome listed = list_sources(arguments.sources, arguments.recursive, Take::kFrames, files);
  if (!listed.ok()) return report_failure(listed);
  std::vector<nlohmann::ordered_json> found;
  const int code = for_each_source(files, [&](const std::string& path) {
    nlohmann::ordered_json document;
    Outcome outcome = describe(path, arguments.units, document);
    if (outcome.ok()) found.push_back(std::move(document));
    return outcome;
  });
  if (common.json) {
    if (code == kExitDone) print_document({{"files", found}});
    return code;
  }
  if (found.empty()) return code;
  std::string text = table_of(found);
  for (const auto& file : found) {
    if (arguments.units) text += units_of(file);
  }
  std::fputs(text.c_str(), stdout);
  return code;
}

}  // namespace

void declare_list(Verb& verb) {
  auto arguments = std::make_shared<ListArguments>();
  verb.summary = "what is in compressed files: sizes, units, memory, without decoding";
  verb.description =
      "Reads headers and indexes alone and tells each FILE's level, frames, units, sizes and the memory that decoding "
      "takes on one thread. What it says is checked only when the content is decoded (`glyd test`).";
  verb.positional("FILE", arguments->sources, "files made by `glyd compress`", Offer::kPaths);
  verb.flag("-r,--recursive", arguments->recursive, "take the .glyd files in folders too");
  verb.flag("-u,--units", arguments->units, "each unit's place and size too");
  verb.examples = {"glyd list model.tar.glyd", "glyd list -r my-folder --json"};
  verb.run = [arguments](const Common& common) { return list(*arguments, common); };
}

}  // namespace glyd::cli
