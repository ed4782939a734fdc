#!/usr/bin/env bash
# Runs one fuzz target: fuzz/run.sh TARGET SECONDS. Builds it, fuzzes in a copy of its corpus (and the golden vectors), and says how to keep what
# it found. Crashes land in build/fuzz/crashes/TARGET/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $# -ne 2 ]]; then
  echo "usage: fuzz/run.sh TARGET SECONDS   (targets: $(cd fuzz && ls fuzz_*.cpp | sed 's/\.cpp//' | tr '\n' ' '))" >&2
  exit 2
fi
target=$1 seconds=$2
[[ -f fuzz/$target.cpp ]] || { echo "fuzz/run.sh: no target $target" >&2; exit 2; }
build=${GLYD_FUZZ_BUILD:-build/fuzz}
[[ -f $build/build.ninja ]] || cmake --preset fuzz -B "$build" > /dev/null
flock "$build/lock" cmake --build "$build" --target "$target" -j "${GLYD_JOBS:-2}"  # two runs at once must not build in one place at once

mkdir -p "$build/corpus/$target" "$build/crashes/$target" "fuzz/corpus/$target"
seeds=("fuzz/corpus/$target")
if [[ $target == fuzz_pack ]]; then seeds+=(tests/vectors/v1/valid tests/vectors/v1/invalid tests/vectors/v1/hostile); fi
if [[ $target == fuzz_codec_frame ]]; then seeds+=(tests/vectors/codec); fi
"$build/bin/$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=3000 -max_len=16384 -print_final_stats=1 \
  -artifact_prefix="$build/crashes/$target/" "$build/corpus/$target" "${seeds[@]}"
echo "smaller corpus: $build/bin/$target -merge=1 fuzz/corpus/$target $build/corpus/$target"
