make-input duplicate m
glyd pack m out
