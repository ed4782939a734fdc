make-input past-end m
glyd pack m out
