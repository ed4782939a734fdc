#include "checkpoint/streams.hpp"

#include <sys/stat.h>

#include <iterator>
#include <vector>

namespace glyd {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBackgroundBytes = uint64_t{1} << 20;  // below, a thread costs more than it brings

}  // namespace

HashTask::HashTask(ByteSpan bytes, bool background)
    : hash_(std::async(background && bytes.size() >= kBackgroundBytes ? std::launch::async | std::launch::deferred
                                                                      : std::launch::deferred,
                       [bytes] { return sha256_hex(bytes); })) {}

Result<std::string> copy_range(const File& from, uint64_t offset, uint64_t bytes, File* to, Progress& progress,
                               const std::string& what) {
  std::vector<uint8_t> piece(std::min(bytes, kPieceBytes));
  Sha256 hash;
  for (uint64_t done = 0; done < bytes;) {
    const MutableByteSpan part(piece.data(), std::min<uint64_t>(piece.size(), bytes - done));
    GLYD_CHECK(from.read_at(offset + done, part));
    hash.update(part);
    if (to != nullptr) GLYD_CHECK(to->write(part));
    done += part.size();
    GLYD_CHECK(progress.advance(part.size(), what));
  }
  return hash.hex();
}

Result<void> finish_file(File& file, uint64_t mode) {
  if (::fchmod(file.descriptor(), static_cast<mode_t>(mode & 0777)) != 0)
    return errno_error("set the mode of", file.path());
  GLYD_CHECK(file.sync());
  return file.close();
}

Result<void> make_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return io_error("cannot create {}: {}", path.string(), error.message());
  return Ok{};
}

Result<void> make_parents(const fs::path& root, const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? Ok{} : make_directory(root / path.substr(0, slash));
}

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

Result<void> check_space(const fs::path& directory, uint64_t least_bytes, uint64_t needed_bytes) {
  std::error_code failed;
  const fs::space_info space = fs::space(directory, failed);
  if (failed || space.available >= least_bytes) return Ok{};
  return io_error("{}: about {} are needed there, {} are free; make room, or choose another place", directory.string(),
                  size_text(needed_bytes), size_text(space.available));
}

Error with_space_needed(Error error, const fs::path& directory, uint64_t needed_bytes) {
  if (error.status != GLYD_ERROR_IO || error.message.find(directory.string()) == std::string::npos) return error;
  std::error_code failed;
  const fs::space_info space = fs::space(directory.parent_path(), failed);
  error.message +=
      fmt::format("; about {} are needed in {}", size_text(needed_bytes), directory.parent_path().string());
  if (!failed) error.message += fmt::format(", {} are free", size_text(space.available));
  return error;
}

}  // namespace glyd
