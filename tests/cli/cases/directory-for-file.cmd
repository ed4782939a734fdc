make-input model m
rm m/model.safetensors
mkdir m/model.safetensors
glyd pack m out
