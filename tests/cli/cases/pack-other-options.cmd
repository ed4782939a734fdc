# What a stopped pack finished with other options is not used by the next one, which says so.
make-input shards m
signal-when INT .out.glyd-staging/journal.json glyd pack m out -t 1 -q 2> messages || echo "exit $?"
glyd pack m out --layout small --no-verify 2> messages | grep -c resumed || true
sed 's/: [1-6] shards* of/: N shards of/' messages
glyd verify out -q
