// checkpoint.cpp - glyd/checkpoint.h.
#include "glyd/checkpoint.h"

#include "capi/text.hpp"
#include "checkpoint/checkpoint.hpp"

namespace glyd::capi {
namespace {

ProgressCallback progress_of(glyd_progress progress, void* user) {
  if (progress == nullptr) return {};
  return [progress, user](uint64_t done, uint64_t total, const char* what) {
    return progress(user, done, total, what) == 0;
  };
}

Result<Layout> wanted_layout(glyd_layout layout) {
  switch (layout) {
    case GLYD_LAYOUT_RAW:  // the zero of options that name none
    case GLYD_LAYOUT_AUTO:
    case GLYD_LAYOUT_FAST:
      return Layout::kFast;
    case GLYD_LAYOUT_SMALL:
      return Layout::kSmall;
    default:
      return invalid_argument("layout {} cannot be asked for (known: auto, fast, small)", static_cast<int>(layout));
  }
}

Result<std::string> required(const char* text, const char* name) {
  if (text == nullptr) return invalid_argument("{}: null pointer", name);
  return std::string(text);
}

}  // namespace
}  // namespace glyd::capi

using namespace glyd;        // NOLINT: this file is the boundary
using namespace glyd::capi;  // NOLINT

extern "C" {

const char* glyd_text_data(const glyd_text* text) noexcept { return text == nullptr ? "" : text->text.c_str(); }
void glyd_text_free(glyd_text* text) noexcept { delete text; }

glyd_status glyd_checkpoint_pack(const char* source, const char* target, const glyd_pack_options* given,
                                 glyd_text** document) noexcept {
  return give_document(document, [&]() -> Result<OrderedJson> {
    GLYD_TRY(const std::string from, required(source, "source"));
    GLYD_TRY(const std::string to, required(target, "target"));
    GLYD_TRY(const glyd_pack_options read, read_options(given));
    PackOptions options;
    GLYD_TRY(options.layout, wanted_layout(read.layout));
    options.threads = read.threads;
    options.overwrite = read.overwrite != 0;
    options.verify = read.no_verify == 0;
    options.hash_files = read.hash_files != 0;
    options.revision = read.revision;
    options.glyd_version = GLYD_VERSION;
    options.progress = progress_of(read.progress, read.user);
    if (read.note != nullptr) options.note = [&read](const char* text) { read.note(read.user, text); };
    return pack_checkpoint(from, to, options);
  });
}

glyd_status glyd_checkpoint_verify(const char* directory, const glyd_verify_options* given,
                                   glyd_text** document) noexcept {
  return give_report(document, [&](OrderedJson& report) -> Result<void> {
    GLYD_TRY(const std::string path, required(directory, "directory"));
    GLYD_TRY(const glyd_verify_options read, read_options(given));
    GLYD_CHECK(verify_checkpoint(
        path, {read.threads, read.source, read.revision, progress_of(read.progress, read.user)}, &report));
    return Ok{};
  });
}

glyd_status glyd_checkpoint_unpack(const char* directory, const char* target, const glyd_unpack_options* given,
                                   glyd_text** document) noexcept {
  return give_report(document, [&](OrderedJson& report) -> Result<void> {
    GLYD_TRY(const std::string from, required(directory, "directory"));
    GLYD_TRY(const std::string to, required(target, "target"));
    GLYD_TRY(const glyd_unpack_options read, read_options(given));
    const UnpackOptions options{read.threads, read.overwrite != 0, progress_of(read.progress, read.user),
                                read.salvage != 0};
    GLYD_CHECK(unpack_checkpoint(from, to, options, &report));
    return Ok{};
  });
}

glyd_status glyd_checkpoint_sizes(const char* const* sources, size_t count, const glyd_sizes_options* given,
                                  glyd_text** document) noexcept {
  return give_document(document, [&]() -> Result<OrderedJson> {
    if (sources == nullptr || count == 0) return invalid_argument("sources: none given");
    std::vector<std::string> paths;
    for (size_t i = 0; i < count; ++i) {
      GLYD_TRY(std::string path, required(sources[i], "sources"));
      paths.push_back(std::move(path));
    }
    GLYD_TRY(const glyd_sizes_options read, read_options(given));
    return checkpoint_sizes(paths, {read.threads, read.revision, progress_of(read.progress, read.user)});
  });
}

glyd_status glyd_checkpoint_inspect(const char* path, const char* revision, glyd_text** document) noexcept {
  return give_document(document, [&]() -> Result<OrderedJson> {
    GLYD_TRY(const std::string text, required(path, "path"));
    return inspect_checkpoint(text, revision);
  });
}

glyd_status glyd_checkpoint_fit(const char* source, const glyd_fit_options* given, glyd_text** document) noexcept {
  return give_document(document, [&]() -> Result<OrderedJson> {
    GLYD_TRY(const std::string text, required(source, "source"));
    GLYD_TRY(const glyd_fit_options read, read_options(given));
    FitOptions options;
    GLYD_TRY(options.gpu, required(read.gpu, "options.gpu"));
    if (read.context != 0) options.context = read.context;
    if (read.batch != 0) options.batch = read.batch;
    options.revision = read.revision;
    return fit_checkpoint(text, options);
  });
}

}  // extern "C"
