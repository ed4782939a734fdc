# What a stopped pack finished is not taken away by an unpack to its target.
make-input shards m
glyd pack m packed -q
signal-when INT .out.glyd-staging/journal.json glyd pack m out -t 1 -q 2> messages || echo "exit $?"
glyd unpack packed out || echo "exit $?"
glyd pack m out --json | grep -c '"shards_resumed": [1-6]'
