source "$SHARE/completions/glyd.bash"
try() {  # what Tab offers at the end of the words
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _glyd 2> /dev/null || true  # compopt fails where no completion is going on
  echo "$*| ${COMPREPLY[*]}"
}
mkdir model
touch model.safetensors
try glyd ''
try glyd un
try glyd pack --l
try glyd pack --
try glyd pack --layout ''
try glyd pack -l s
try glyd pack mod
try glyd verify mod
try glyd fit --gpu 4
try glyd completion ''
try glyd help si
try glyd doctor ''
