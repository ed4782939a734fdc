make-input model m
glyd pack m packed -q
make-input set-manifest packed '"glyd-v3"' format
glyd verify packed
