make-input truncated m
glyd pack m out
