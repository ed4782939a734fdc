# requires: zsh
# Loads, and offers the verbs and a verb's options, in a real shell on a pseudo terminal.
zsh -f -c '
  autoload -U compinit; compinit -u -d "$PWD/dump"
  fpath=("$SHARE/completions" $fpath)
  source "$SHARE/completions/_glyd"
  print ${_comps[glyd]}
  zmodload zsh/zpty
  zpty shell zsh -f -i
  zpty -w shell "PS1=; autoload -U compinit; compinit -u -d $PWD/dump2; source $SHARE/completions/_glyd"
  zpty -w -n shell $'"'"'glyd unp\t'"'"'
  sleep 1
  zpty -r -t shell answer "*glyd unpack*" && print "glyd unp| unpack"
  zpty -d shell
'
