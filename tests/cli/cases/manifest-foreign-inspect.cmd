make-input model m
glyd pack m packed -q
make-input set-manifest packed '"glyd-v1"' format
glyd inspect packed
