#!/usr/bin/env bash
# Installs what glyd builds with, from Debian 12's packages. Does nothing where all are installed.
#   scripts/install_deps.sh [--tests]     --tests: also what the test suite needs
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config git ca-certificates libssl-dev libfmt-dev nlohmann-json3-dev libcli11-dev libxxhash-dev python3-venv python3-dev ccache)
if [ "${1:-}" = --tests ]; then
  packages+=(libgtest-dev libgmock-dev libbenchmark-dev liblz4-dev libzstd-dev liblzma-dev clang-format man-db bash-completion)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install_deps: run as root, or install: ${missing[*]}" >&2; exit 3; }
  as_root=(sudo)
fi
echo "Installing: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
