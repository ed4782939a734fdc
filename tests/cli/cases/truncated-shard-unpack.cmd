make-input model m
glyd pack m packed -q
truncate -s -128 packed/glyd-00001-of-00001.safetensors
glyd unpack packed out
