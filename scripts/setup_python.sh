#!/usr/bin/env bash
# Makes .venv with torch, transformers and this package (built from the source tree). Quick where they are there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ -x .venv/bin/python ] || python3 -m venv .venv
if ! .venv/bin/python -c 'import torch, transformers, safetensors, accelerate, gguf, pytest, numpy, matplotlib' 2>/dev/null; then
  echo "Installing torch and transformers into .venv (a few minutes) ..." >&2
  .venv/bin/pip install --quiet --disable-pip-version-check torch transformers safetensors accelerate gguf pytest numpy matplotlib
fi
.venv/bin/pip install --quiet --disable-pip-version-check .
