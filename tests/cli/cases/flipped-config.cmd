make-input model m
glyd pack m packed -q
make-input flip packed/config.json 5
glyd verify packed
