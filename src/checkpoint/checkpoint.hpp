// checkpoint.hpp - the operations on packed checkpoints. Each returns the document that include/glyd/checkpoint.h
// describes, where each option is explained too.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/progress.hpp"
#include "format/json_text.hpp"
#include "format/pack_header.hpp"

namespace glyd {

struct PackOptions {
  Layout layout = Layout::kFast;
  int threads = 0;
  bool overwrite = false;
  bool verify = true;
  bool hash_files = false;
  const char* revision = nullptr;
  std::string glyd_version;
  ProgressCallback progress;
  std::function<void(const char* text)> note;  // what the user should know though the pack goes on
};
Result<OrderedJson> pack_checkpoint(const std::string& source, const std::string& target, const PackOptions& options);

struct VerifyOptions {
  int threads = 0;
  const char* source = nullptr;
  const char* revision = nullptr;
  ProgressCallback progress;
};
// With faults in it the error has all of them, a line each; `report`, if given, gets the document in both cases.
Result<OrderedJson> verify_checkpoint(const std::string& directory, const VerifyOptions& options,
                                      OrderedJson* report = nullptr);

struct UnpackOptions {
  int threads = 0;
  bool overwrite = false;
  ProgressCallback progress;
  bool salvage = false;
};
// Salvage that could not restore all is an error which has the faults, a line each; `report`, if given, gets the
// document all the same.
Result<OrderedJson> unpack_checkpoint(const std::string& directory, const std::string& target,
                                      const UnpackOptions& options, OrderedJson* report = nullptr);

struct SizesOptions {
  int threads = 0;
  const char* revision = nullptr;
  ProgressCallback progress;
};
Result<OrderedJson> checkpoint_sizes(const std::vector<std::string>& sources, const SizesOptions& options);

Result<OrderedJson> inspect_checkpoint(const std::string& path, const char* revision);

struct FitOptions {
  std::string gpu;
  uint64_t context = 8192;
  uint64_t batch = 1;
  const char* revision = nullptr;
};
Result<OrderedJson> fit_checkpoint(const std::string& source, const FitOptions& options);

}  // namespace glyd
