# What makes no sense together.
seq 10 > text
try() { glyd "$@" || echo "exit $?"; }
try compress text text -o one
try compress --max --ultra text
try compress --level best text
try compress text --unit 100000
try compress text --unit big
try compress text -c --json
try compress text -c --rm
try compress text --max-level
try decompress text --memory little
try decompress text --memory 99999999999999999999
try test text --memory nanK
try cat text --json
try -x text
try --ultra nothing -T many
ls
