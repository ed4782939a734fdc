make-input index-escapes m
glyd pack m out
