make-input model m
glyd pack m packed -q
printf more >> packed/glyd-00001-of-00001.safetensors
glyd verify packed
