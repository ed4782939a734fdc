make-input model m
glyd pack m packed -q
make-input set-manifest packed '"glyd-v2"' format
glyd unpack packed out
