make-input model m
glyd pack m packed -q
make-input flip packed/glyd.safetensors.index.json 10
glyd verify packed
