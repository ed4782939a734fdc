// output_file.hpp - what a codec verb writes: a file that appears only when it is whole, a device, or standard output.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "input_file.hpp"
#include "outcome.hpp"

namespace glyd::cli {

struct OutputOptions {
  bool overwrite = false;  // replace a regular file
  bool sparse = false;     // long runs of zeros become holes, in files of our own
  bool durable = false;    // on the disk before finish() returns
};

class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();  // takes what is not finished away
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // "-" is standard output. The source itself, by whatever name or link, is refused, and a file that is there unless it
  // may be overwritten. Other files are written as .NAME.glyd-staging beside their place.
  Outcome open(const std::string& target, const InputFile& source, const OutputOptions& options);

  Outcome write(const void* bytes, size_t count);
  // The next bytes are zeros.
  Outcome skip(uint64_t count);
  // Gives the file its size, `source`'s permissions and times, and its name.
  Outcome finish(const InputFile& source);

  uint64_t written() const { return position_; }

 private:
  Outcome open_existing(const InputFile& source, bool& found);
  Outcome open_staging();
  Outcome write_here(const uint8_t* bytes, size_t count);
  Outcome write_sparse(const uint8_t* bytes, size_t count);
  Outcome take_attributes(const InputFile& source);
  Outcome take_name();

  int descriptor_ = -1;
  bool standard_ = false, staged_ = false, replaces_ = false;
  OutputOptions options_;
  uint64_t position_ = 0;  // bytes of content so far
  uint64_t end_ = 0;       // of what was really written: behind it are zeros
  std::string name_;       // for messages
  std::string target_, staging_;
};

}  // namespace glyd::cli
