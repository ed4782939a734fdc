make-input model m
glyd pack m packed -q
make-input set-manifest packed '"zip"' format
glyd verify packed
