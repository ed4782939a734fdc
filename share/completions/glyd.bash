# Written by `glyd completion bash`; do not edit.
_glyd() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W 'pack verify unpack sizes fit inspect compress decompress test list cat doctor tune completion help --help --version' -- "$current"))
    return
  fi
  case "$verb" in
    help) COMPREPLY=($(compgen -W 'pack verify unpack sizes fit inspect compress decompress test list cat doctor tune completion' -- "$current")) ;;
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
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-t --threads --overwrite --salvage --json -q --quiet -h --help' -- "$current")); return; fi
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
    compress)
      case "$previous" in
        -l|--level) COMPREPLY=($(compgen -W 'default max ultra' -- "$current")); return ;;
        -o|--output) COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null; return ;;
        --unit) COMPREPLY=(); return ;;
        -t|-T|--threads) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-l --level --default --max --ultra --long -o --output -c --stdout -r --recursive -f --overwrite --force -k --keep --rm --unit -t -T --threads --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    decompress)
      case "$previous" in
        -o|--output) COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null; return ;;
        -M|--memory) COMPREPLY=(); return ;;
        -t|-T|--threads) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-o --output -c --stdout -r --recursive -f --overwrite --force -k --keep --rm --salvage --no-sparse -M --memory -t -T --threads -d --decompress --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    test)
      case "$previous" in
        -M|--memory) COMPREPLY=(); return ;;
        -t|-T|--threads) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-r --recursive -M --memory -t -T --threads --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    list)
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-r --recursive -u --units --json -q --quiet -h --help' -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
      ;;
    cat)
      case "$previous" in
        -R|--range) COMPREPLY=(); return ;;
        -M|--memory) COMPREPLY=(); return ;;
        -t|-T|--threads) COMPREPLY=(); return ;;
      esac
      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '-R --range -M --memory -t -T --threads --json -q --quiet -h --help' -- "$current")); return; fi
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
