make-input model m
glyd pack m packed --no-verify
glyd verify packed
