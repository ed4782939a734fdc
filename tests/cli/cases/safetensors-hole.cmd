make-input hole m
glyd pack m out
