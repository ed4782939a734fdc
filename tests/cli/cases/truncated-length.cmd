make-input cut-in-length m
glyd pack m out
