make-input model m
glyd pack m packed -q
make-input flip packed/glyd.json 300
glyd verify packed
