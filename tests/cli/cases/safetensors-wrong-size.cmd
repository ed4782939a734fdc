make-input wrong-size m
glyd pack m out
