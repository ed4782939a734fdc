make-input no-tensors m
glyd pack m out
