make-input model m
glyd pack m/model.safetensors packed
glyd verify packed --source m/model.safetensors
glyd unpack packed back.safetensors
cmp m/model.safetensors back.safetensors
