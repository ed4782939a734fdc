make-input model m
glyd pack m m/packed
