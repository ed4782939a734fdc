# A killed pack leaves its staging directory and nothing that passes for a model; the next pack cleans up.
make-input large m 128
signal-when KILL .out.glyd-staging/new glyd pack m out || echo "exit $?"
ls -d out 2> /dev/null || echo "no out"
ls -d .out.glyd-staging
glyd verify .out.glyd-staging/new || echo "exit $?"
glyd pack m out -q
glyd verify out -q
find . -maxdepth 1 -name '.*.glyd-staging'
