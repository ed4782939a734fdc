#include "dispatch/cublas.hpp"

#include <cublasLt.h>
#include <cublas_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <mutex>

namespace glyd::cuda {
namespace {

struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

// Tries each name: first what the process has loaded already (torch's own), then the loader's search path.
Result<Library> open_library(std::initializer_list<const char*> names) {
  for (const int flags : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW}) {
    for (const char* name : names) {
      if (void* handle = dlopen(name, flags | RTLD_LOCAL)) return Library(handle);
    }
  }
  return not_found("{}: not found; install CUDA's cuBLAS or put its folder on LD_LIBRARY_PATH", *names.begin());
}

// The functions used, under their own names.
struct Functions {
// clang-format off
#define GLYD_CUBLAS_FUNCTIONS(X)                                                                              \
  X(blas, cublasCreate_v2) X(blas, cublasDestroy_v2) X(blas, cublasSetStream_v2)                              \
  X(blas, cublasSetWorkspace_v2) X(blas, cublasSetMathMode)                                                   \
  X(lt, cublasLtCreate) X(lt, cublasLtDestroy) X(lt, cublasLtGetVersion) X(lt, cublasLtMatmul)                \
  X(lt, cublasLtMatmulDescCreate) X(lt, cublasLtMatmulDescDestroy) X(lt, cublasLtMatmulDescSetAttribute)      \
  X(lt, cublasLtMatrixLayoutCreate) X(lt, cublasLtMatrixLayoutDestroy) X(lt, cublasLtMatmulPreferenceCreate)  \
  X(lt, cublasLtMatmulPreferenceDestroy) X(lt, cublasLtMatmulPreferenceSetAttribute)                          \
  X(lt, cublasLtMatmulAlgoGetHeuristic) X(lt, cublasLtMatmulAlgoConfigGetAttribute)
// clang-format on
#define GLYD_DECLARE(library, name) decltype(&::name) name = nullptr;
  GLYD_CUBLAS_FUNCTIONS(GLYD_DECLARE)
#undef GLYD_DECLARE
  // The header overloads this one, so its type is written out.
  using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                    const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                                    cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
  GemmEx gemm_ex = nullptr;

  Result<void> load(void* blas, void* lt) {
#define GLYD_LOAD(library, symbol)                                         \
  symbol = reinterpret_cast<decltype(&::symbol)>(dlsym(library, #symbol)); \
  if (symbol == nullptr) return not_found("cuBLAS: no function " #symbol "; it is too old");
    GLYD_CUBLAS_FUNCTIONS(GLYD_LOAD)
#undef GLYD_LOAD
    gemm_ex = reinterpret_cast<GemmEx>(dlsym(blas, "cublasGemmEx"));
    if (gemm_ex == nullptr) return not_found("cuBLAS: no function cublasGemmEx; it is too old");
    return Ok{};
  }
};

Result<void> check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return Ok{};
  return internal("{}: cuBLAS status {}", call, static_cast<int>(status));
}

uint32_t alignment_of(const void* p) {
  const uint64_t address = reinterpret_cast<uintptr_t>(p);
  return address == 0 ? 256 : static_cast<uint32_t>(std::min<uint64_t>(256, address & (~address + 1)));
}

// The descriptors of one product for cublasLt, and its heuristic's first answer.
class LtProblem {
 public:
  explicit LtProblem(const Functions& f) : f_(f) {}
  LtProblem(const LtProblem&) = delete;
  LtProblem& operator=(const LtProblem&) = delete;
  ~LtProblem() {
    if (preference_ != nullptr) f_.cublasLtMatmulPreferenceDestroy(preference_);
    for (cublasLtMatrixLayout_t layout : {weights_, x_, y_}) {
      if (layout != nullptr) f_.cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation_ != nullptr) f_.cublasLtMatmulDescDestroy(operation_);
  }

  Result<void> build(cublasLtHandle_t handle, const DenseProduct& p, const CublasOptions& options) {
    GLYD_CHECK(describe(p));
    GLYD_CHECK(prefer(p, options));
    int found = 0;
    GLYD_CHECK(check(
        f_.cublasLtMatmulAlgoGetHeuristic(handle, operation_, weights_, x_, y_, y_, preference_, 1, &result_, &found),
        "cublasLtMatmulAlgoGetHeuristic"));
    if (found == 0) return unsupported("cuBLAS has no algorithm for {} x {} by {} tokens", p.rows, p.cols, p.tokens);
    return Ok{};
  }

  Result<void> run(cublasLtHandle_t handle, const DenseProduct& p, void* workspace, uint64_t bytes,
                   cudaStream_t stream) const {
    const float one = 1, zero = 0;
    return check(f_.cublasLtMatmul(handle, operation_, &one, p.weights, weights_, p.x, x_, &zero, p.y, y_, p.y, y_,
                                   &result_.algo, workspace, bytes, stream),
                 "cublasLtMatmul");
  }

  Result<uint32_t> splits() const {
    int32_t splits = 1;
    size_t written = 0;
    GLYD_CHECK(check(f_.cublasLtMatmulAlgoConfigGetAttribute(&result_.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits,
                                                             sizeof splits, &written),
                     "cublasLtMatmulAlgoConfigGetAttribute"));
    return splits < 1 ? 1u : static_cast<uint32_t>(splits);
  }

 private:
  // Column-major: y^T [rows, tokens] = op(W) [rows, cols] by x^T [cols, tokens].
  Result<void> describe(const DenseProduct& p) {
    GLYD_CHECK(
        check(f_.cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate"));
    const cublasOperation_t transpose = CUBLAS_OP_T;
    GLYD_CHECK(
        check(f_.cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose),
              "cublasLtMatmulDescSetAttribute"));
    if (p.bias != nullptr) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      GLYD_CHECK(check(
          f_.cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
          "cublasLtMatmulDescSetAttribute"));
      GLYD_CHECK(check(
          f_.cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias, sizeof p.bias),
          "cublasLtMatmulDescSetAttribute"));
    }
    const auto rows = static_cast<uint64_t>(p.rows), cols = static_cast<uint64_t>(p.cols),
               tokens = static_cast<uint64_t>(p.tokens);
    GLYD_CHECK(
        check(f_.cublasLtMatrixLayoutCreate(&weights_, CUDA_R_16BF, cols, rows, p.cols), "cublasLtMatrixLayoutCreate"));
    GLYD_CHECK(
        check(f_.cublasLtMatrixLayoutCreate(&x_, CUDA_R_16BF, cols, tokens, p.x_stride), "cublasLtMatrixLayoutCreate"));
    return check(f_.cublasLtMatrixLayoutCreate(&y_, CUDA_R_16BF, rows, tokens, p.y_stride),
                 "cublasLtMatrixLayoutCreate");
  }

  Result<void> prefer(const DenseProduct& p, const CublasOptions& options) {
    GLYD_CHECK(check(f_.cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate"));
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      return check(f_.cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value),
                   "cublasLtMatmulPreferenceSetAttribute");
    };
    GLYD_CHECK(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, size_t{options.workspace_bytes}));
    GLYD_CHECK(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.weights)));
    GLYD_CHECK(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.x)));
    GLYD_CHECK(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.y)));
    return set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.bias != nullptr ? p.bias : p.y));
  }

  const Functions& f_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t weights_ = nullptr, x_ = nullptr, y_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t result_{};
};

class LoadedCublas final : public Cublas {
 public:
  LoadedCublas(Library blas, Library lt, const CublasOptions& options)
      : blas_library_(std::move(blas)), lt_library_(std::move(lt)), options_(options) {}
  ~LoadedCublas() override {
    if (handle_ != nullptr) f_.cublasDestroy_v2(handle_);
    if (lt_ != nullptr) f_.cublasLtDestroy(lt_);
  }

  Result<void> initialise() {
    GLYD_CHECK(f_.load(blas_library_.get(), lt_library_.get()));
    GLYD_CHECK(check(f_.cublasCreate_v2(&handle_), "cublasCreate"));
    GLYD_CHECK(check(f_.cublasLtCreate(&lt_), "cublasLtCreate"));
    const cublasMath_t mode =
        options_.reduced_precision
            ? CUBLAS_DEFAULT_MATH
            : static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    return check(f_.cublasSetMathMode(handle_, mode), "cublasSetMathMode");
  }

  Result<void> multiply(const DenseProduct& p, void* workspace, cudaStream_t stream) override {
    const std::lock_guard lock(mutex_);
    if (p.bias != nullptr) {
      LtProblem problem(f_);
      GLYD_CHECK(problem.build(lt_, p, options_));
      return problem.run(lt_, p, workspace, options_.workspace_bytes, stream);
    }
    GLYD_CHECK(check(f_.cublasSetStream_v2(handle_, stream), "cublasSetStream"));
    GLYD_CHECK(check(f_.cublasSetWorkspace_v2(handle_, workspace, options_.workspace_bytes), "cublasSetWorkspace"));
    const float one = 1, zero = 0;
    return check(f_.gemm_ex(handle_, CUBLAS_OP_T, CUBLAS_OP_N, p.rows, p.tokens, p.cols, &one, p.weights, CUDA_R_16BF,
                            p.cols, p.x, CUDA_R_16BF, static_cast<int>(p.x_stride), &zero, p.y, CUDA_R_16BF,
                            static_cast<int>(p.y_stride), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP),
                 "cublasGemmEx");
  }

  Result<uint32_t> splits(const DenseProduct& p) override {
    const std::lock_guard lock(mutex_);
    LtProblem problem(f_);
    GLYD_CHECK(problem.build(lt_, p, options_));
    return problem.splits();
  }

  uint64_t version() const override { return f_.cublasLtGetVersion(); }
  const CublasOptions& options() const override { return options_; }

 private:
  Library blas_library_, lt_library_;
  CublasOptions options_;
  Functions f_;
  cublasHandle_t handle_ = nullptr;
  cublasLtHandle_t lt_ = nullptr;
  std::mutex mutex_;
};

}  // namespace

Result<std::unique_ptr<Cublas>> Cublas::create(const CublasOptions& options) {
  GLYD_TRY(Library lt, open_library({"libcublasLt.so.13", "libcublasLt.so.12"}));
  GLYD_TRY(Library blas, open_library({"libcublas.so.13", "libcublas.so.12"}));
  auto loaded = std::make_unique<LoadedCublas>(std::move(blas), std::move(lt), options);
  GLYD_CHECK(loaded->initialise());
  return std::unique_ptr<Cublas>(std::move(loaded));
}

}  // namespace glyd::cuda
