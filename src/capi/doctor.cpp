// doctor.cpp - glyd_doctor: what this machine has, what is missing, and the command that brings it. CUDA is only looked
// for, never linked.
#include <dlfcn.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/cpu.hpp"
#include "base/guard.hpp"
#include "base/parallel.hpp"
#include "capi/doctor_verdicts.hpp"
#include "capi/text.hpp"
#include "glyd/checkpoint.h"

namespace glyd::capi {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

// A library opened by name as long as the object lives.
class Library {
 public:
  explicit Library(const std::string& name) : handle_(::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }
  template <typename Function>
  Function* find(const char* symbol) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, symbol));
  }

 private:
  void* handle_;
};

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(':');
    if ((line.starts_with("model name") || line.starts_with("Model")) && colon != std::string::npos)
      return line.substr(std::min(line.size(), colon + 2));
  }
  return "unknown";
}

// MemAvailable of /proc/meminfo: what can be taken without swapping. 0 if it is not told.
uint64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name, unit;
  for (uint64_t kibibytes = 0; info >> name >> kibibytes; std::getline(info, unit)) {
    if (name == "MemAvailable:") return kibibytes << 10;
  }
  return 0;
}

OrderedJson cpu_json() {
  const auto pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return {{"model", cpu_model()},
          {"instruction_set", isa_name(cpu_isa())},
          {"instruction_set_available", isa_name(cpu_isa_detected())},
          {"threads", available_cpus()},
          {"memory_bytes", pages * page},
          {"memory_available_bytes", available_memory()}};
}

DoctorFindings findings(const OrderedJson& gpu, const std::string& glyd_cuda, const std::string& cublas) {
  DoctorFindings found;
  found.instruction_set = isa_name(cpu_isa());
  found.has_driver = !gpu["driver"].is_null();
  for (const auto& device : gpu["devices"]) {
    const auto capability = device["compute_capability"].get<std::string>();
    const size_t point = capability.find('.');
    found.gpus.push_back(
        {device["name"].get<std::string>(), std::atoi(capability.c_str()), std::atoi(capability.c_str() + point + 1)});
  }
  found.has_glyd_cuda = !glyd_cuda.empty();
  found.has_cublas = !cublas.empty();
  if (found.has_glyd_cuda) {
    const Library library(glyd_cuda);
    if (auto* abi = library.find<uint32_t()>("glyd_cuda_abi_version"); abi != nullptr) found.glyd_cuda_abi = abi();
  }
  return found;
}

// The few calls of the driver's API that are needed to name its devices.
OrderedJson gpu_json() {
  OrderedJson gpu = {{"driver", nullptr}, {"devices", OrderedJson::array()}};
  const Library cuda("libcuda.so.1");
  auto* init = cuda.find<int(unsigned)>("cuInit");
  auto* version = cuda.find<int(int*)>("cuDriverGetVersion");
  auto* count_devices = cuda.find<int(int*)>("cuDeviceGetCount");
  auto* get_device = cuda.find<int(int*, int)>("cuDeviceGet");
  auto* get_name = cuda.find<int(char*, int, int)>("cuDeviceGetName");
  auto* get_memory = cuda.find<int(size_t*, int)>("cuDeviceTotalMem_v2");
  auto* get_attribute = cuda.find<int(int*, int, int)>("cuDeviceGetAttribute");
  if (init == nullptr || version == nullptr || count_devices == nullptr || get_device == nullptr ||
      get_name == nullptr || get_memory == nullptr || get_attribute == nullptr) {
    return gpu;
  }
  int number = 0;
  if (version(&number) == 0) gpu["driver"] = fmt::format("CUDA {}.{}", number / 1000, number % 1000 / 10);
  int count = 0;
  if (init(0) != 0 || count_devices(&count) != 0) return gpu;
  constexpr int kComputeMajor = 75, kComputeMinor = 76, kMultiprocessors = 16;  // CU_DEVICE_ATTRIBUTE_*
  for (int i = 0; i < count; ++i) {
    int device = 0, major = 0, minor = 0, multiprocessors = 0;
    size_t bytes = 0;
    char name[256] = {};
    if (get_device(&device, i) != 0 || get_name(name, sizeof name - 1, device) != 0) continue;
    (void)get_memory(&bytes, device);
    (void)get_attribute(&major, kComputeMajor, device);
    (void)get_attribute(&minor, kComputeMinor, device);
    (void)get_attribute(&multiprocessors, kMultiprocessors, device);
    gpu["devices"].push_back({{"name", name},
                              {"memory_bytes", bytes},
                              {"compute_capability", fmt::format("{}.{}", major, minor)},
                              {"multiprocessors", multiprocessors}});
  }
  return gpu;
}

// GLYD_CUDA_LIB, else beside this library, else wherever the loader looks. Empty if it is not found.
std::string find_glyd_cuda() {
  if (const char* named = std::getenv("GLYD_CUDA_LIB"); named != nullptr && *named != '\0')
    return Library(named) ? named : "";
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&glyd_doctor), &self) != 0 && self.dli_fname != nullptr) {
    const std::string beside = (fs::path(self.dli_fname).parent_path() / "libglyd_cuda.so").string();
    if (Library(beside)) return beside;
  }
  return Library("libglyd_cuda.so") ? "libglyd_cuda.so" : "";
}

std::string find_first(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (Library(name)) return name;
  }
  return "";
}

std::string find_nvcc() {
  std::vector<fs::path> places;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0')
      places.push_back(fs::path(home) / "bin");
  }
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) places.push_back(rest.substr(0, colon));
    rest.erase(0, std::min(rest.size(), colon + 1));
  }
  places.push_back("/usr/local/cuda/bin");
  for (const auto& place : places) {
    if (::access((place / "nvcc").c_str(), X_OK) == 0) return (place / "nvcc").string();
  }
  return "";
}

OrderedJson library_json(const char* name, const std::string& found, const char* needed_for) {
  return {
      {"name", name}, {"found", found.empty() ? OrderedJson(nullptr) : OrderedJson(found)}, {"needed_for", needed_for}};
}

OrderedJson diagnose() {
  OrderedJson gpu = gpu_json();
  const bool has_driver = !gpu["driver"].is_null(), has_device = !gpu["devices"].empty();
  const std::string glyd_cuda = find_glyd_cuda(), nvcc = find_nvcc();
  const std::string cublas = find_first({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"});
  OrderedJson advice = OrderedJson::array();
  const auto advise = [&](const char* missing, const char* command) {
    advice.push_back({{"missing", missing}, {"command", command}});
  };
  if (!has_driver) {
    advise("NVIDIA driver (only for GPU routes; the CPU needs none of this)", "apt-get install nvidia-driver");
  } else if (!has_device) {
    advise("a GPU that this process may use", "nvidia-smi -L; unset CUDA_VISIBLE_DEVICES");
  }
  if (has_device && glyd_cuda.empty()) {
    advise("libglyd_cuda", "cmake --preset cuda && cmake --build --preset cuda");
    if (nvcc.empty()) advise("nvcc, to build libglyd_cuda", "bash scripts/setup_env.sh .venv");
  }
  if (has_device && cublas.empty())
    advise("cuBLAS (exact products and the route that decodes and multiplies)", "pip install nvidia-cublas");
  if (cpu_isa() != cpu_isa_detected())
    advise("the CPU's best instruction set, which GLYD_CPU turns off", "unset GLYD_CPU");
  // A pack holds the largest tensor three times over (checkpoint.md): a small machine still packs, one tensor at a
  // time.
  constexpr uint64_t kLittleMemory = uint64_t{1} << 30;
  OrderedJson cpu = cpu_json();
  if (const auto memory = cpu["memory_available_bytes"].get<uint64_t>(); memory != 0 && memory < kLittleMemory)
    advise("memory: less than 1 GiB is available; pack needs three times the largest tensor and 256 MiB",
           "end other programs, or pack on another machine");
  OrderedJson verdicts = doctor_verdicts(findings(gpu, glyd_cuda, cublas));
  return {{"version", glyd_version()},
          {"cpu", std::move(cpu)},
          {"libraries",
           {library_json("OpenSSL", OpenSSL_version(OPENSSL_VERSION), "sha256"),
            library_json("libglyd_cuda", glyd_cuda, "GPU routes"),
            library_json("cuBLASLt", cublas, "exact products on the GPU"),
            library_json("nvcc", nvcc, "building libglyd_cuda")}},
          {"gpu", std::move(gpu)},
          {"verdicts", std::move(verdicts)},
          {"advice", std::move(advice)}};
}

}  // namespace
}  // namespace glyd::capi

extern "C" glyd_status glyd_doctor(glyd_text** document) noexcept {
  using namespace glyd::capi;  // NOLINT: this file is the boundary
  return give_document(document, []() -> glyd::Result<nlohmann::ordered_json> { return diagnose(); });
}
