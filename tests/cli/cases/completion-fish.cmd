# requires: fish
fish --no-config -c '
  source $SHARE/completions/glyd.fish
  complete -C "glyd un"
  complete -C "glyd pack --l"
  complete -C "glyd pack --layout s"
  complete -C "glyd completion "
'
