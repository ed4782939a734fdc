make-input model m
glyd pack m packed -q
make-input set-manifest packed -1 source_files 0 bytes
glyd verify packed
