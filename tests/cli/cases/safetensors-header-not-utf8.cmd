make-input header-not-utf8 m
glyd pack m out
