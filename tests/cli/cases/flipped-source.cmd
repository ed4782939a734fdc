# The packed model is whole, but is not this source's.
make-input model m
glyd pack m packed -q
make-input flip m/model.safetensors -100
glyd verify packed --source m
