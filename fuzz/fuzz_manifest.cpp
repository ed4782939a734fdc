// fuzz_manifest.cpp - any bytes as glyd.json: an error, or a manifest that is the same when it is written and read
// again and that names no path outside its directory.
#include <string>

#include "base/sha256.hpp"
#include "checkpoint/manifest.hpp"
#include "common/guarded_buffer.hpp"

namespace {

using glyd::fuzz::check;

constexpr std::string_view kHashMember = "\"document_sha256\"";

// Puts the right hash in place of the last 64 digits after the member's name, so that the code behind that check is
// reached.
void put_hash_right(std::string& text) {
  const std::size_t name = text.rfind(kHashMember);
  if (name == std::string::npos) return;
  const std::size_t quote = text.find('"', name + kHashMember.size());
  if (quote == std::string::npos || text.size() - quote < 66) return;
  text.replace(quote + 1, 64, 64, '0');
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  text.replace(quote + 1, 64, glyd::sha256_hex({bytes, text.size()}));
}

void check_paths(const glyd::Manifest& manifest) {
  for (const auto& file : manifest.source_files)
    check(glyd::is_plain_path(file.path) && glyd::is_plain_path(file.shard));
  for (const auto& file : manifest.files) check(glyd::is_plain_path(file.path));
  for (const auto& path : manifest.directories) check(glyd::is_plain_path(path));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  put_hash_right(text);
  std::vector<glyd::SafetensorsHeader> headers;
  const auto manifest = glyd::parse_manifest(text, "glyd.json", headers);
  if (!manifest) {
    check(!manifest.error().message.empty());
    return 0;
  }
  check(headers.size() == manifest.value().source_files.size());
  check_paths(manifest.value());
  const std::string written = glyd::write_manifest(manifest.value());
  const auto again = glyd::parse_manifest(written, "glyd.json", headers);
  check(again && glyd::write_manifest(again.value()) == written);
  return 0;
}
