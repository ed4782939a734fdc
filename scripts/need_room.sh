# need_room MEGABYTES DIR WHAT [REMEDY]: exits with 3 where DIR's disk has less free. To be sourced. A disk that fills half way leaves an error of
# pip's that names no place, and an environment that is broken.
need_room() {
  local free
  free=$(df --output=avail -BM "$2" | tail -n 1 | tr -dc 0-9)
  [ "$free" -ge "$1" ] && return 0
  echo "$(basename "$0"): $3 takes about $1 MB, and the disk of $2 has $free MB free: make room${4:-}" >&2
  exit 3
}

# For torch, transformers and what comes with them in an environment below DIR: pip downloads all of it before it unpacks the first.
need_room_for_torch() {
  local downloads=${TMPDIR:-/tmp} both=0
  [ "$(stat -c %d "$1")" != "$(stat -c %d "$downloads")" ] || both=3500
  need_room $((6500 + both)) "$1" "torch with its libraries"
  need_room 3500 "$downloads" "what pip downloads" ", or set TMPDIR to a folder of another disk"
}
