#!/usr/bin/env bash
# Makes .venv with torch, transformers and this package (built from the source tree). Quick where they are there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source scripts/need_room.sh

[ -x .venv/bin/python ] || python3 -m venv .venv
if ! .venv/bin/python -c 'import torch, transformers, safetensors, accelerate, gguf, pytest, numpy, matplotlib' 2>/dev/null; then
  need_room_for_torch "$PWD"
  echo "Installing torch and transformers into .venv (6 GB; minutes, by the network and the disk) ..." >&2
  .venv/bin/pip install --quiet --disable-pip-version-check torch transformers safetensors accelerate gguf pytest numpy matplotlib &
  pip=$!
  trap 'kill "$pip" 2>/dev/null || true' EXIT
  # pip downloads to a temporary place first: until it unpacks, .venv stays small.
  while sleep 1; kill -0 "$pip" 2>/dev/null; do
    if ((SECONDS % 30 == 0)); then echo "  $SECONDS s: pip is at work, $(du -sh .venv | cut -f1) in .venv" >&2; fi
  done
  trap - EXIT
  wait "$pip"
fi
echo "Building the package and installing it into .venv ..." >&2
.venv/bin/pip install --quiet --disable-pip-version-check .
