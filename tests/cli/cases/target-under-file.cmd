make-input model m
glyd pack m m/README.md/out
