make-input model m
glyd pack m packed -q
: > packed/glyd.json
glyd verify packed
