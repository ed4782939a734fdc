# verify names every fault, not the first only; --json lists them.
make-input sharded m
glyd pack m packed -q
make-input flip packed/glyd-00001-of-00002.safetensors 20000
make-input flip packed/glyd-00001-of-00002.safetensors -1
make-input flip packed/glyd-00002-of-00002.safetensors 20000
echo more >> packed/README.md
rm packed/tokenizer/vocabulary.txt
echo hello > packed/stranger.txt
glyd verify packed || echo "exit $?"
glyd verify packed --json 2> messages | grep -c "SCRATCH\|$PWD"
wc -l < messages
glyd unpack packed out || echo "exit $?"
