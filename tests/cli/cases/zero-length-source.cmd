make-input zero-length m
glyd pack m out
