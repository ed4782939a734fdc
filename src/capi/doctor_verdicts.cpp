#include "capi/doctor_verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "glyd/cuda.h"

namespace glyd::capi {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The one that libglyd_cuda is built for (docs/gpu.md).
bool is_served(const DoctorGpu& gpu) { return gpu.compute_major == 9 && gpu.compute_minor == 0; }

OrderedJson verdict(const char* product, OrderedJson exact, const std::string& runs) {
  return {{"product", product}, {"exact", std::move(exact)}, {"runs", runs}};
}

}  // namespace

std::string gpu_obstacle(const DoctorFindings& found) {
  if (!found.has_driver) return "no NVIDIA driver";
  if (found.gpus.empty()) return "no GPU that this process may use";
  if (std::none_of(found.gpus.begin(), found.gpus.end(), is_served)) {
    return fmt::format("{} has compute capability {}.{}, and only 9.0 (Hopper) is served", found.gpus.front().name,
                       found.gpus.front().compute_major, found.gpus.front().compute_minor);
  }
  if (!found.has_glyd_cuda) return "libglyd_cuda is not found";
  if (!found.glyd_cuda_abi) return "what is found as libglyd_cuda is no such library";
  if (*found.glyd_cuda_abi != GLYD_CUDA_ABI_VERSION) {
    return fmt::format("libglyd_cuda has ABI {}, this library {}: build both from one tree", *found.glyd_cuda_abi,
                       GLYD_CUDA_ABI_VERSION);
  }
  return "";
}

nlohmann::ordered_json doctor_verdicts(const DoctorFindings& found) {
  OrderedJson verdicts = OrderedJson::array();
  verdicts.push_back(verdict("pack, verify, unpack (CPU)", true,
                             found.instruction_set + " kernels; the bytes are the same with every instruction set"));
  verdicts.push_back(verdict("linear, exact=True (CPU, Python)", true,
                             "decoded rows through torch's own linear, checked at the first product of each kind"));
  verdicts.push_back(verdict("linear, exact=False (CPU)", false,
                             found.instruction_set + " kernels on the packed bytes, fp32 sums in their own order"));
  const std::string obstacle = gpu_obstacle(found);
  if (!obstacle.empty()) {
    verdicts.push_back(verdict("linear, exact (GPU)", nullptr, obstacle));
    verdicts.push_back(verdict("linear, any order (GPU)", nullptr, obstacle));
    return verdicts;
  }
  verdicts.push_back(
      found.has_cublas
          ? verdict("linear, exact (GPU)", true,
                    "the fused kernel for shapes that glyd_cuda_prepare found equal to cuBLAS, else decode and cuBLAS")
          : verdict("linear, exact (GPU)", nullptr, "no cuBLAS, whose bits it must give"));
  verdicts.push_back(verdict("linear, any order (GPU)", false,
                             found.has_cublas ? "the fused kernel, else decode and cuBLAS"
                                              : "the fused kernel; shapes that it does not serve need cuBLAS"));
  return verdicts;
}

}  // namespace glyd::capi
