make-input overlap m
glyd pack m out
