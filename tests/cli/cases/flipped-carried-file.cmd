make-input model m
glyd pack m packed -q
make-input flip packed/README.md 3
glyd verify packed
