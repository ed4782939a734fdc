# A layout of single tensors, not one to ask for.
make-input model m
glyd pack m out --layout raw
