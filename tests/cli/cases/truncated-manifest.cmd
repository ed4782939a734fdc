make-input model m
glyd pack m packed -q
truncate -s -40 packed/glyd.json
glyd verify packed
