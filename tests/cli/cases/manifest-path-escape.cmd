make-input model m
glyd pack m packed -q
make-input set-manifest packed '"../../escape"' files 0 path
glyd unpack packed out
