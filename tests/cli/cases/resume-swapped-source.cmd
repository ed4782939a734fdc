# A source file put in another's place, of the same size and time of modification, is packed again; so is one whose shard was cut.
make-input shards m
signal-when INT .out.glyd-staging/journal.json glyd pack m out -t 1 -q 2> messages || echo "exit $?"
first=$(ls m/*.safetensors | head -1)
cp -p $first copy
make-input flip copy 100000
touch -r $first copy
mv copy $first
glyd pack m out > summary
glyd verify out --source m -q
signal-when INT .out2.glyd-staging/journal.json glyd pack m out2 -t 1 -q 2> messages || echo "exit $?"
truncate -s 5000 .out2.glyd-staging/new/glyd-00001-of-*
glyd pack m out2 > summary
glyd verify out2 --source m -q
