#include "dispatch/verdicts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/crc32c.hpp"
#include "base/file.hpp"

namespace glyd::cuda {
namespace {

constexpr std::string_view kFirstLine = "glyd verdicts 1", kLastLine = "crc32c ";
constexpr uint64_t kMostFileBytes = uint64_t{16} << 20;
constexpr uint64_t kMostSplits = 64;

// All environments' verdicts, by their lines.
using Sections = std::map<std::string, Verdicts, std::less<>>;

// The next line of `text`, without its end; takes it off.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

uint32_t checksum(std::string_view text) {
  return crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// Seven numbers with one blank between them: rows, cols, tokens, bias, exact, splits, differing.
bool parse_verdict(std::string_view line, ProductKey& key, Verdict& verdict) {
  std::array<uint64_t, 7> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) {
      if (!line.starts_with(' ')) return false;
      line.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), numbers[i]);
    if (error != std::errc()) return false;
    line.remove_prefix(static_cast<size_t>(end - line.data()));
  }
  if (!line.empty() || numbers[3] > 1 || numbers[4] > 1 || numbers[5] < 1 || numbers[5] > kMostSplits) return false;
  key = {numbers[0], numbers[1], numbers[2], numbers[3] == 1};
  verdict = {numbers[4] == 1, static_cast<uint32_t>(numbers[5]), numbers[6]};
  return true;
}

Result<Sections> parse(std::string_view text) {
  const size_t last = text.rfind(kLastLine);
  const std::string_view body = text.substr(0, last == std::string_view::npos ? 0 : last);
  std::string_view rest = body;
  if (take_line(rest) != kFirstLine) return corrupt("the last line is no checksum");
  if (text.substr(last) != fmt::format("{}{:08x}\n", kLastLine, checksum(body))) return corrupt("the checksum differs");
  Sections sections;
  Verdicts* section = nullptr;
  for (size_t number = 2; !rest.empty(); ++number) {
    const std::string_view line = take_line(rest);
    if (line.starts_with('[')) {
      section = &sections[std::string(line)];
      continue;
    }
    ProductKey key;
    Verdict verdict;
    if (section == nullptr || !parse_verdict(line, key, verdict)) return corrupt("line {} is no verdict", number);
    (*section)[key] = verdict;
  }
  return sections;
}

std::string print(const Sections& sections) {
  std::string text = fmt::format("{}\n", kFirstLine);
  for (const auto& [line, verdicts] : sections) {
    text += line + '\n';
    for (const auto& [key, verdict] : verdicts) {
      text += fmt::format("{} {} {} {} {} {} {}\n", key.rows, key.cols, key.tokens, key.bias ? 1 : 0,
                          verdict.exact ? 1 : 0, verdict.splits, verdict.differing);
    }
  }
  return text + fmt::format("{}{:08x}\n", kLastLine, checksum(text));
}

Result<Sections> read_sections(const std::filesystem::path& path) {
  const auto text = read_text_file(path, kMostFileBytes);
  if (!text && text.error().status == GLYD_ERROR_NOT_FOUND) return Sections{};
  if (!text) return text.error();
  if (text.value().empty()) return corrupt("{}: empty", path.string());
  if (!text.value().starts_with(fmt::format("{}\n", kFirstLine))) {
    return foreign_format("{}: not a file of verdicts, or of another version: line 1 is not \"{}\"", path.string(),
                          kFirstLine);
  }
  auto sections = parse(text.value());
  if (!sections) return corrupt("{}: {}", path.string(), sections.error().message);
  return sections;
}

// Held while a process reads the file, adds to it and replaces it.
class Lock {
 public:
  static Result<Lock> take(const std::filesystem::path& path) {
    Lock lock;
    lock.descriptor_ = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (lock.descriptor_ < 0) return errno_error("create", path);
    while (::flock(lock.descriptor_, LOCK_EX) != 0) {
      if (errno != EINTR) return errno_error("lock", path);
    }
    return lock;
  }
  ~Lock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Lock(Lock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Lock& operator=(Lock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

 private:
  Lock() = default;
  int descriptor_ = -1;
};

Result<void> replace_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::path staging = path;
  staging += ".new";  // one writer at a time: the lock
  std::error_code ignored;
  std::filesystem::remove(staging, ignored);
  GLYD_CHECK(write_new_file(staging, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  if (std::rename(staging.c_str(), path.c_str()) != 0) return errno_error("replace", path);
  return sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

// Nothing that would end a line or a section's name.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += c < ' ' || c == ']' || c == ';' ? '_' : c;
  return out;
}

}  // namespace

std::string VerdictEnvironment::line() const {
  return fmt::format("[{}; driver {}; cublas {}; glyd {}; workspace {}; reduced {}]", printable(gpu), printable(driver),
                     cublas, printable(library), workspace_bytes, reduced_precision ? 1 : 0);
}

Result<Verdicts> read_verdicts(const std::filesystem::path& path, const VerdictEnvironment& environment) {
  GLYD_TRY(Sections sections, read_sections(path));
  const auto found = sections.find(environment.line());
  return found == sections.end() ? Verdicts{} : std::move(found->second);
}

Result<void> merge_verdicts(const std::filesystem::path& path, const VerdictEnvironment& environment,
                            const Verdicts& verdicts) {
  std::filesystem::path lock_path = path;
  lock_path += ".lock";
  GLYD_TRY(const Lock lock, Lock::take(lock_path));
  auto read = read_sections(path);
  if (!read && read.error().status != GLYD_ERROR_CORRUPT) return read.error();
  Sections sections = read ? std::move(read).value() : Sections{};
  Verdicts& section = sections[environment.line()];
  for (const auto& [key, verdict] : verdicts) section[key] = verdict;
  return replace_file(path, print(sections));
}

}  // namespace glyd::cuda
