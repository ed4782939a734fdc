make-input model m
glyd pack m packed -q
make-input set-manifest packed '"glyd-x7"' format
glyd verify packed
