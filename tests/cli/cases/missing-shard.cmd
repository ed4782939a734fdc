make-input sharded m
glyd pack m packed -q
rm packed/glyd-00002-of-00002.safetensors
glyd verify packed
