#!/usr/bin/env bash
# Makes a Python environment for packed models on an NVIDIA GPU, without root: torch, transformers, nvcc, this package and
# libglyd_cuda built in it.
#   scripts/setup_env.sh DIR
# Needs g++, cmake, ninja and the libraries that scripts/install_deps.sh lists. A torch that is in DIR already stays: its
# CUDA decides which nvcc is taken (this machine's, or one from Python packages). Run again, it does only what is missing.
# Afterwards: source DIR/glyd-env.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/need_room.sh

fail() { echo "setup_env: $1" >&2; exit "${2:-1}"; }

case ${1:-} in
  "" | -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; [ -n "${1:-}" ] && exit 0; exit 2 ;;
  -*) fail "unknown option $1 (--help shows them)" 2 ;;
esac
[ $# -eq 1 ] || fail "one directory, not also $2" 2
for tool in python3 g++ cmake ninja; do
  command -v "$tool" >/dev/null || fail "$tool is missing (scripts/install_deps.sh lists what to install)" 3
done
mkdir -p "$1"
directory=$(cd "$1" && pwd)
python=$directory/bin/python
[ -x "$python" ] || python3 -m venv "$directory"
install() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }

if ! "$python" -c 'import torch, transformers, safetensors, accelerate, numpy, matplotlib' 2>/dev/null; then
  need_room_for_torch "$directory"
  echo "Installing torch and transformers (6 GB) ..." >&2
  install torch "transformers>=5.17" safetensors accelerate numpy matplotlib
fi
cuda=$("$python" -c 'import torch; print(torch.version.cuda or "")')
[ -n "$cuda" ] || fail "the torch in $directory is built without CUDA: install another there (pytorch.org says how), then run this again"
major=${cuda%%.*}

# The compiler: this machine's if it is of torch's CUDA and 12.8 or newer, else the one from Python packages.
serves() {
  local found
  found=$("$1" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p')
  [ "${found%%.*}" = "$major" ] && [ "$(printf '12.8\n%s\n' "$found" | sort -V | head -n 1)" = 12.8 ]
}
packaged_nvcc() { find "$directory"/lib/python3*/site-packages/nvidia -path '*/bin/nvcc' -type f 2>/dev/null | head -n 1; }

nvcc=$(command -v nvcc || true)
if [ -z "$nvcc" ] || ! serves "$nvcc"; then
  nvcc=$(packaged_nvcc)
  if [ -z "$nvcc" ] && [ "$major" -ge 13 ]; then # the packages of CUDA 12 have no nvcc
    echo "Installing nvcc $cuda ..." >&2
    install "nvidia-cuda-nvcc==$cuda.*" "nvidia-cuda-crt==$cuda.*" "nvidia-nvvm==$cuda.*" "nvidia-cuda-cccl==$cuda.*" "nvidia-cuda-runtime==$cuda.*"
    nvcc=$(packaged_nvcc)
  fi
  [ -n "$nvcc" ] && serves "$nvcc" ||
    fail "torch is built for CUDA $cuda, and no nvcc of CUDA $major (12.8 or newer) was found: install one and put it into PATH" 3
  root=$(dirname "$(dirname "$nvcc")")
  [ -e "$root/lib64" ] || ln -s lib "$root/lib64" # where nvcc looks for its libraries
fi

echo "Building the package and libglyd_cuda with $nvcc (minutes) ..." >&2
install .
build=$directory/build-cuda
log=$directory/build-cuda.log
CUDACXX=$nvcc cmake --preset cuda -DGLYD_DEVELOPER=OFF -B "$build" >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2; fail "cmake failed; the log is $log"; }
ninja -C "$build" glyd_cuda >>"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "the build failed; the log is $log"; }

cat >"$directory/glyd-env.sh" <<ENVIRONMENT
# Made by scripts/setup_env.sh. source this file.
. "$directory/bin/activate"
export GLYD_CUDA_LIB="$build/lib/libglyd_cuda.so"
ENVIRONMENT
GLYD_CUDA_LIB=$build/lib/libglyd_cuda.so "$python" - <<'PYTHON'
import glyd.gpu
problem = glyd.gpu.why_unavailable()
print("ready: packed models run on this GPU" if problem is None else f"built, but no GPU can be used here: {problem}")
PYTHON
echo "source $directory/glyd-env.sh"
