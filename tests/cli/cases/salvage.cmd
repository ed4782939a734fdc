# Of a damaged packed model everything that is intact comes back; what is not is named, with status 1.
make-input sharded m
glyd pack m packed -q
glyd unpack packed whole --salvage
diff -r m whole
make-input flip packed/glyd-00001-of-00002.safetensors 20000
echo edited > packed/README.md
rm packed/tokenizer/vocabulary.txt
echo hello > packed/stranger.txt
make-input flip packed/config.json 20
glyd unpack packed out-some --salvage || echo "exit $?"
diff -rq m out-some || true
cmp m/model-00002-of-00002.safetensors out-some/model-00002-of-00002.safetensors
glyd inspect out-some/model-00001-of-00002.safetensors > inspected
glyd unpack packed out-json --salvage --json 2> messages | grep -A2 ok || true
# What a salvage brings back never replaces a directory.
cp -r m good
glyd unpack packed good --salvage --overwrite || echo "exit $?"
diff -r m good
