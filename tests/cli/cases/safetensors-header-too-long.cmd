make-input header-too-long m
glyd pack m out
