make-input model m
glyd pack m no/such/out
