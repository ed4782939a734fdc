// gpu_report.hpp - results as JSON lines, on stdout and in a file; the first says what ran on what.
#pragma once

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <fstream>
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
    cudaDeviceProp properties{};
    int runtime = 0;
    cudaGetDeviceProperties(&properties, context.device().ordinal);
    cudaRuntimeGetVersion(&runtime);
    write({{"command", command},
           {"commit", commit},
           {"gpu", properties.name},
           {"driver", driver_version()},
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
  // As the kernel module tells it, "580.65.06"; else the CUDA version that the driver knows.
  static std::string driver_version() {
    std::ifstream in("/proc/driver/nvidia/version");
    for (std::string word; in >> word;) {
      if (word.size() > 5 && std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos)
        return word;
    }
    int version = 0;
    cudaDriverGetVersion(&version);
    return fmt::format("for CUDA {}", version);
  }

  std::FILE* file_;
};

}  // namespace glyd::bench
