make-input mixed-dtypes m
glyd inspect m/model.safetensors
