// source_list.hpp - the files that a codec verb works on: what was named, and with --recursive what folders hold.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "outcome.hpp"
#include "verb.hpp"

namespace glyd::cli {

inline constexpr const char* kFrameSuffix = ".glyd";

bool has_frame_suffix(const std::string& path);
bool is_directory(const std::string& path);

enum class Take { kPlainFiles, kFrames };  // of a folder: files without the suffix, or with it

// `named` in order; a folder becomes its files in order of their names. Links in folders are left alone, and so are
// unfinished files. Without `recursive` folders stay in the list, to be refused when opened. Nothing named is "-".
Outcome list_sources(const std::vector<std::string>& named, bool recursive, Take take, std::vector<std::string>& files);

// Runs `work` on each, reports what fails and goes on; the exit status is that of the first failure.
int for_each_source(const std::vector<std::string>& files, const std::function<Outcome(const std::string&)>& work);

}  // namespace glyd::cli
