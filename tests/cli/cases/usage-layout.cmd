make-input model m
glyd pack m out --layout tight
