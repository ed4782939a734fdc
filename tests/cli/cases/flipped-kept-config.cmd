make-input model m
glyd pack m packed -q
make-input flip packed/glyd-source/config.json 5
glyd unpack packed out
