make-input header-nested m
glyd pack m out
