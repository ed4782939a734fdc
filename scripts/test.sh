#!/usr/bin/env bash
# Builds everything and runs every test that this machine can run. Fresh Debian 12, 2 cores: within an hour in all.
#   scripts/test.sh [STAGE...]      stages: checks dev asan install cuda python, all by default
# Outside it, by hand: all of the asan preset (`cmake --build --preset asan && ctest --preset asan`), `cmake --preset tidy && cmake --build --preset tidy`, the tsan preset, long fuzzing (fuzz/run.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=$(nproc)
build=${GLYD_BUILD_DIR:-build}
# Paths relative to the tree, so that another clone of it finds what this one compiled.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi
summary=()

# stage NAME BUDGET_MINUTES FUNCTION: runs it under its budget and keeps its time.
stage() {
  local name=$1 budget=$2 run=$3 start=$SECONDS
  printf '\n== %s (at most %d min)\n' "$name" "$budget"
  export -f "$run" build_preset 2>/dev/null || true
  if ! timeout --foreground "${budget}m" bash -euo pipefail -c "jobs=$jobs build=$build; $(declare -f build_preset "$run" check_vectors); $run"; then
    printf '\nscripts/test.sh: stage %s failed after %d s\n' "$name" $((SECONDS - start)) >&2
    exit 1
  fi
  summary+=("$(printf '%-8s %4d s' "$name" $((SECONDS - start)))")
}

# build_preset NAME [TARGET...]: all targets unless some are named.
build_preset() {
  local name=$1
  shift
  cmake --preset "$name" -B "$build/$name" >"$build/$name-configure.log" 2>&1 || { cat "$build/$name-configure.log"; return 1; }
  ninja -C "$build/$name" -j "$jobs" "$@" 2>&1 | { grep -vE '^\[[0-9]+/[0-9]+\]|^ninja: (Entering|no work)' || true; }
}

run_checks() {
  python3 tools/check_layers.py
  if command -v clang-format >/dev/null; then
    git ls-files '*.cpp' '*.hpp' '*.h' '*.c' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror
    echo "clang-format: ok"
  else
    echo "clang-format: not installed, left out"
  fi
}

# A machine with AVX-512 or AMX must have run their tests: a kernel that no test ran is not tested.
check_vectors() {
  local report=$1
  local isa
  isa=$("$build/dev/bin/glyd" doctor --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["cpu"]["instruction_set_available"])')
  if [ "$isa" != avx512 ] && [ "$isa" != amx ]; then
    echo "AVX-512, AMX: this CPU has none; their kernels were compiled, their tests skipped"
    return 0
  fi
  python3 - "$report" "$isa" <<'PY'
import sys
import xml.etree.ElementTree as tree
ran = [case.get("name") for case in tree.parse(sys.argv[1]).iter("testcase") if case.get("status") == "run"]
counts = {name: sum(name in test for test in ran) for name in (["Avx512", "Amx"] if sys.argv[2] == "amx" else ["Avx512"])}
print(", ".join(f"{name}: {count} tests ran" for name, count in counts.items()))
sys.exit(0 if all(counts.values()) else 1)
PY
}

run_dev() {
  build_preset dev
  # What this preset builds is built where there is no CUDA, too; a machine that has its headers in the compiler's path would not notice.
  if ninja -C "$build/dev" -t deps 2>/dev/null | grep -qE '/(cuda|cuda_runtime[a-z_]*|cublas[A-Za-z_0-9]*)\.h$'; then
    ninja -C "$build/dev" -t deps 2>/dev/null | awk '/^[^ ]/ {target = $1} /\/(cuda|cuda_runtime[a-z_]*|cublas[A-Za-z_0-9]*)\.h$/ {print target, $1}' | grep -v include/glyd/cuda.h && return 1
  fi
  ctest --test-dir "$build/dev" -j "$jobs" --output-on-failure --output-junit ctest.xml -LE long
  check_vectors "$build/dev/ctest.xml"
}

# The layers that read what others wrote: files, packs, checkpoints. A chosen part, for its build time: sanitizers make JSON's templates slow to compile.
# Products, the command line and the codec run under sanitizers by hand, their parsers in the fuzzers.
run_asan() {
  build_preset asan base_test format_test weights_test checkpoint_test crash_full_disk_test crash_kill_test
  local program
  for program in base_test format_test weights_test checkpoint_test crash_full_disk_test crash_kill_test; do
    "$build/asan/bin/$program" --gtest_brief=1
  done
}

# The library as a user meets it: installed, found by pkg-config and by CMake, called from C99; src/ by one plain compiler line.
run_install() {
  build_preset release
  local prefix; prefix=$(mktemp -d)
  cmake --install "$build/release" --prefix "$prefix" >/dev/null
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name glyd.pc)"); export PKG_CONFIG_PATH
  cc -std=c99 -pedantic -Wall -Wextra -Werror examples/pack_matrix.c $(pkg-config --cflags --libs glyd) -Wl,-rpath,"$(pkg-config --variable=libdir glyd)" -o "$prefix/pack_matrix"
  "$prefix/pack_matrix"
  cmake -S tests/install -B "$prefix/consumer" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  cmake --build "$prefix/consumer" >/dev/null && "$prefix/consumer/pack_matrix"
  "$prefix/bin/glyd" --version
  g++ -std=c++20 -O1 -fsyntax-only -Isrc -Iinclude -DGLYD_VERSION='"0"' $(find src -name '*.cpp' -not -path 'src/cuda/*' -not -name '*avx*')
  rm -rf "$prefix"
}

run_cuda() {
  if ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
    if [ "${CI:-}" = true ]; then echo "cuda: nvcc not found, and CI must build the CUDA part" >&2; return 1; fi
    echo "cuda: nvcc not found: libglyd_cuda was left out (install the CUDA toolkit 13 to build it)"
    return 0
  fi
  command -v nvcc >/dev/null || export PATH="$PATH:/usr/local/cuda/bin"
  if [ ! -f src/cuda/CMakeLists.txt ]; then echo "cuda: no CUDA sources yet"; return 0; fi
  build_preset cuda src/cuda/all tests/gpu/all bench/gpu/all
  ctest --test-dir "$build/cuda" -j "$jobs" --output-on-failure -L gpu
  # Installed and called from C99; without a GPU the examples are compiled and linked only.
  local prefix cuda example; prefix=$(mktemp -d); cuda=$(dirname "$(dirname "$(command -v nvcc)")")
  build_preset cuda glyd
  local component
  for component in library development cuda; do cmake --install "$build/cuda" --component "$component" --prefix "$prefix" >/dev/null; done
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name glyd_cuda.pc)"); export PKG_CONFIG_PATH
  for example in linear unpack; do
    cc -std=c99 -pedantic -Wall -Wextra -Werror "examples/$example.c" $(pkg-config --cflags --libs glyd_cuda glyd) -isystem "$cuda/include" -L"$cuda/lib64" -lcudart \
      -Wl,-rpath,"$(pkg-config --variable=libdir glyd_cuda)" -o "$prefix/$example"
  done
  rm -rf "$prefix"
}

run_python() {
  scripts/setup_python.sh
  .venv/bin/python tools/make_vectors.py --check
  # pytest takes the package from the tree, and the library that was built and installed with it.
  GLYD_LIB=$(find .venv/lib -path '*/site-packages/glyd/libglyd.so*' | head -n 1) .venv/bin/python -m pytest -q tests/python
}

mkdir -p "$build"
scripts/install_deps.sh --tests
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(checks dev asan install cuda python)
for name in "${stages[@]}"; do
  case $name in
    checks) stage checks 3 run_checks ;;
    dev) stage dev 20 run_dev ;;
    install) stage install 15 run_install ;;
    asan) stage asan 15 run_asan ;;
    cuda) stage cuda 15 run_cuda ;;
    python) stage python 25 run_python ;;
    *) echo "scripts/test.sh: no stage $name" >&2; exit 2 ;;
  esac
done
printf '\nAll stages passed:\n'
printf '  %s\n' "${summary[@]}"
