# What a script gives with a variable that is not set.
seq 1000 > text
glyd compress text -q
try() { glyd "$@" || echo "exit $?"; }
try cat text.glyd --range ""
try decompress text.glyd -f -o ""
try compress ""
try pack "" out
try pack text out --layout ""
try inspect text --revision=
