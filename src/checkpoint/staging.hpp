// staging.hpp - a target that appears whole or not at all. Spec: docs/spec/checkpoint.md 6.
//
// Everything is made in `.<name>.glyd-staging` beside the target: `lock` (flock), `journal.json` (pack's), and `new`,
// which becomes the target by one rename.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace glyd {

class Staging {
 public:
  // Which existing targets --overwrite may replace: an error says why not.
  using MayReplace = std::function<Result<void>(const std::filesystem::path&)>;

  // Locks the target's staging directory, making it if it is not there. An existing target is GLYD_ERROR_EXISTS unless
  // `overwrite` and may_replace agree. GLYD_ERROR_BUSY if another process works on the same target.
  static Result<Staging> open(const std::filesystem::path& target, bool overwrite, const MayReplace& may_replace);

  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&& other) = delete;
  // Removes the staging directory unless keep() was called.
  ~Staging();

  std::filesystem::path new_path() const { return directory_ / "new"; }
  std::filesystem::path journal_path() const { return directory_ / "journal.json"; }
  const std::filesystem::path& directory() const { return directory_; }
  const std::filesystem::path& target() const { return target_; }

  // Leaves what is there for the next pack (a full disk, for example).
  void keep() { keep_ = true; }

  // `new` becomes the target; what was there goes, if it still may (somebody may have put files there meanwhile). Then
  // the staging directory is removed.
  Result<void> commit();

 private:
  Staging() = default;
  Result<void> lock();
  void remove();

  std::filesystem::path target_, directory_;
  MayReplace may_replace_;
  bool overwrite_ = false, keep_ = false;
  int lock_ = -1;
};

// The target's parent, which must exist, joined with its name; refuses names that are none. `what` is "target".
Result<std::filesystem::path> resolve_target(const std::string& text);

}  // namespace glyd
