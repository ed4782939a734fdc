// gpu_report.hpp - results as JSON lines, on stdout and in a file; the first says what ran on what.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "dispatch/context.hpp"

namespace glyd::bench {

inline double round4(double v) { return std::round(v * 10000) / 10000; }

class Report {
 public:
  explicit Report(const std::string& path) : file_(path.empty() ? nullptr : std::fopen(path.c_str(), "w")) {}
  ~Report() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  // First: what ran, on what.
  void head(const std::string& command, const std::string& commit, const cuda::Context& context,
            uint64_t cublas_version) {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    write({{"command", command},
           {"commit", commit},
           {"gpu", context.device().name},
           {"driver", context.device().driver},
           {"cuda", runtime},
           {"cublas", cublas_version}});
  }

  void write(const nlohmann::json& line) {
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
    if (file_ == nullptr) return;
    fmt::print(file_, "{}\n", line.dump());
    std::fflush(file_);  // a run that is stopped keeps what it measured
  }

 private:
  std::FILE* file_;
};

}  // namespace glyd::bench
