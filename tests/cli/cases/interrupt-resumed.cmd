# Ctrl-C keeps finished shards, says where, and the next pack goes on from them and says so.
make-input shards m
signal-when INT .out.glyd-staging/journal.json glyd pack m out -t 1 2> messages || echo "exit $?"
sed 's/ [0-9]* of 6/ N of 6/; s/working on [^;]*;/working on SOMETHING;/' messages
glyd verify out || echo "exit $?"
glyd pack m out | sed -n 's/ [0-9]* of 6/ N of 6/; /resumed/p'
glyd verify out -q
find . -maxdepth 1 -name '.*.glyd-staging'
signal-when TERM .out2.glyd-staging/journal.json glyd pack m out2 -t 1 -q 2> messages || echo "exit $?"
glyd pack m out2 --json | grep -c '"shards_resumed": [1-6]'
