// streams.hpp - bytes on their way through: hashed beside other work, copied in pieces.
#pragma once

#include <filesystem>
#include <future>
#include <new>
#include <string>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "base/sha256.hpp"
#include "checkpoint/progress.hpp"

namespace glyd {

inline constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

// The sha256 of bytes that stay where they are until get(), computed on a thread of its own if `background`.
class HashTask {
 public:
  HashTask(ByteSpan bytes, bool background);
  std::string get() { return hash_.get(); }

 private:
  std::future<std::string> hash_;
};

// `bytes` of `from` at `offset` appended to `to` (null: nowhere). Returns their sha256.
Result<std::string> copy_range(const File& from, uint64_t offset, uint64_t bytes, File* to, Progress& progress,
                               const std::string& what);

// Sync, mode (0-0777), close.
Result<void> finish_file(File& file, uint64_t mode);

// Directories above a file that is about to be made below `root`.
Result<void> make_parents(const std::filesystem::path& root, const std::string& path);
Result<void> make_directory(const std::filesystem::path& path);

// "1.23 GB", three digits that matter.
std::string size_text(uint64_t bytes);

// An error, which names `needed_bytes`, if less than `least_bytes` are free where `directory` lies: better now than
// when the disk is full.
Result<void> check_space(const std::filesystem::path& directory, uint64_t least_bytes, uint64_t needed_bytes);

// An error of writing below `directory` gets how much is needed there and how much is free.
Error with_space_needed(Error error, const std::filesystem::path& directory, uint64_t needed_bytes);

// Runs `body`, which returns a Result; where memory runs out, the error says for what and how much is needed about.
template <typename Body>
auto naming_memory(const std::string& place, uint64_t needed_bytes, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return make_error(GLYD_ERROR_OUT_OF_MEMORY, "{}: not enough memory: about {} bytes are needed for it", place,
                      needed_bytes);
  }
}

inline ByteSpan as_bytes(std::string_view text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

}  // namespace glyd
