make-input model m
glyd pack m packed -q
rm packed/README.md
glyd unpack packed out
