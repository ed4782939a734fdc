make-input size-overflow m
glyd pack m out
