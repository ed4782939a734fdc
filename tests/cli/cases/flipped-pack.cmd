make-input model m
glyd pack m packed -q
make-input flip packed/glyd-00001-of-00001.safetensors 20000
glyd verify packed
