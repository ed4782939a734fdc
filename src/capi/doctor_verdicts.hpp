// doctor_verdicts.hpp - which products this machine runs, how, and whether with the very bits of the bf16 product.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glyd::capi {

struct DoctorGpu {
  std::string name;
  int compute_major = 0, compute_minor = 0;
};

// What doctor found, as far as verdicts depend on it.
struct DoctorFindings {
  std::string instruction_set;
  bool has_driver = false;
  std::vector<DoctorGpu> gpus;
  bool has_glyd_cuda = false;
  std::optional<uint32_t> glyd_cuda_abi;  // of the library found; none: it does not say
  bool has_cublas = false;
};

// Why products do not run on the GPU here; empty if they do.
std::string gpu_obstacle(const DoctorFindings& found);

// [{"product", "exact": true | false | null, "runs"}]: exact says whether its bits are those of
// torch.nn.functional.linear, null where the product does not run here; "runs" says what runs, or why nothing does.
nlohmann::ordered_json doctor_verdicts(const DoctorFindings& found);

}  // namespace glyd::capi
