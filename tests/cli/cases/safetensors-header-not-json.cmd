make-input header-not-json m
glyd pack m out
