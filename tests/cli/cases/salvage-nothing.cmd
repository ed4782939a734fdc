# Without the one shard there is nothing to restore: no target appears.
make-input model m
glyd pack m/model.safetensors packed -q
rm packed/glyd-00001-of-00001.safetensors
glyd unpack packed out --salvage
