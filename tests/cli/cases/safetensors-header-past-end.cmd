make-input header-past-end m
glyd pack m out
