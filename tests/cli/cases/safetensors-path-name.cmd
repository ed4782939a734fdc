make-input path-name m
glyd pack m out
