# What a full disk left is used or cleaned up by the next pack.
make-input large m 4
(ulimit -f 1024; glyd pack m out || echo "exit $?")
glyd pack m out -q
glyd verify out
find . -maxdepth 1 -name '.*.glyd-staging'
