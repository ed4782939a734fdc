// cmd_tune.cpp - glyd tune: measures the routes of an unknown GPU. libglyd never links CUDA, so without the CUDA
// library there is nothing to measure.
#include "report.hpp"

namespace glyd::cli {
namespace {

int tune(const Common&) {
  print_error(
      "tune: needs the CUDA library, which is not part of this build. It measures products on an NVIDIA GPU; on the "
      "CPU there is nothing to tune. "
      "Build with `cmake --preset cuda` on a machine with nvcc.");
  return kExitUnsupported;
}

}  // namespace

void declare_tune(Verb& verb) {
  verb.summary = "measure the routes of an unknown GPU (needs the CUDA library)";
  verb.description =
      "Measures which kernel is quickest for each shape and number of tokens on this machine's GPU and stores the "
      "table beside the exactness verdicts. "
      "Needs the CUDA library.";
  verb.examples = {"glyd tune"};
  verb.run = tune;
}

}  // namespace glyd::cli
