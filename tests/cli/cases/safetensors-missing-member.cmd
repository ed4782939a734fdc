make-input missing-member m
glyd pack m out
