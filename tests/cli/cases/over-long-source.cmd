make-input over-long m
glyd pack m out
