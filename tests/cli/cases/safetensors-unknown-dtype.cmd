make-input unknown-dtype m
glyd pack m out
