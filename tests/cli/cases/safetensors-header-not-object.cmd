make-input header-not-object m
glyd pack m out
