make-input offsets-backwards m
glyd pack m out
