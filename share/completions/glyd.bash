# Written by `glyd completion bash`; do not edit.
_glyd() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W 'pack verify unpack sizes fit inspect doctor tune completion help --help --version' -- "$current"))
    return
  fi
  case "$verb" in
    help) COMPREPLY=($(compgen -W 'pack verify unpack sizes fit inspect doctor tune completion' -- "$current")) ;;
    pack)
      case "$previous" in
        -l|--layout) COMPREPLY=($(compgen -W 'fast small auto mma12 mma' -- "$current")); return ;;
        -t|--threads) COMPREPLY=(); return ;;
        --revision) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-l --layout -t --threads --revision --overwrite --no-verify --hash-files --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    verify)
      case "$previous" in
        -s|--source) COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null; return ;;
        --revision) COMPREPLY=(); return ;;
        -t|--threads) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-s --source --revision -t --threads --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -d -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    unpack)
      case "$previous" in
        -t|--threads) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-t --threads --overwrite --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -d -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    sizes)
      case "$previous" in
        -t|--threads) COMPREPLY=(); return ;;
        --revision) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-t --threads --revision --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    fit)
      case "$previous" in
        -g|--gpu) COMPREPLY=($(compgen -W '16GB 24GB 48GB 80GB H100 H200' -- "$current")); return ;;
        -c|--context) COMPREPLY=(); return ;;
        -b|--batch) COMPREPLY=(); return ;;
        --revision) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-g --gpu -c --context -b --batch --revision --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    inspect)
      case "$previous" in
        --revision) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '--revision --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    doctor)
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '--json -q --quiet -h --help' -- "$current")); return; fi
      ;;
    tune)
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '--json -q --quiet -h --help' -- "$current")); return; fi
      ;;
    completion)
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '--json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -W 'bash zsh fish' -- "$current"))
      ;;
  esac
}
complete -F _glyd glyd
